import type { Taint } from '../base/taint.ts'

/**
 * What a group has read hangs on what the host knows: its folder and its home, which every run of the group can write
 * and the next one reads. A session id does not count, as the sandbox reports it, nor does the end of a run, as an
 * agent can go on with a conversation that it keeps in its home. Only wiping the files makes a group clean.
 *
 * Text that lies elsewhere has an entry of its own, and taints whoever is given it.
 */
export const folderContext = 'session'
/** what the host is to tell an agent from an agent: one that begins anew to itself, one that deploys to its next run */
export const carried = 'carried'
/** what the group's name, chat and trigger were written in: every run is told them */
export const nameContext = 'name'
/** what people on a platform call the group's chat, where that is the group's name: the group hears them anyway, others do not */
export const titleContext = 'title'
/** what a task's prompt and script were written in */
export const taskContext = (taskId: string): string => `task:${taskId}`
/** what the last result of a task was written in; the store notes it together with the result */
export const resultContext = (taskId: string): string => `result:${taskId}`

/** Folders are told apart without case, as some file systems do: what two of them hold may be the same files. */
export const folderKey = (folder: string): string => folder.toLowerCase()

/** What is known of texts, by group and context. */
export type Texts = ReadonlyMap<string, Taint>

export const textKey = (group: string, context: string): string => `${folderKey(group)} ${context}`

/** Under what the store keeps when a group was last wiped: the next run is told nothing that was said before. */
export const wipedAt = (folder: string): string => `wiped ${folderKey(folder)}`
