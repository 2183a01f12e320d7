import { constants, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dialects, type Group, type OutgoingFile } from '@hatchway/protocol'
import { pinDirectory, post } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Fault } from '../fault.ts'
import type { Layout } from '../layout.ts'
import type { Store } from '../store/types.ts'

/**
 * What each group sees of the host's state: `current_tasks.json` and `available_groups.json`, in its dialect and
 * filtered by its privilege, replaced as a whole.
 *
 * A change marks the groups whose view it alters. They are written at once when nothing else is waiting, so that an
 * agent that has its answer also finds it in the snapshot; while commands keep coming, at most every `pauseMs` (or
 * four times as long as the last writing took), so that a thousand changes cost a few writings.
 */
export interface Snapshots {
  tasksChanged(folder: string): void
  groupsChanged(): void
  /** every group, bit by bit: what is on disk already is left as it is */
  everything(): void
  /** calls back once everything marked so far is written */
  whenWritten(callback: () => void): void
  /** writes now what is marked, unless more is coming and the pause is not over */
  settle(moreIsComing: boolean): void
  flush(): void
  stop(): void
}

const pauseMs = 25
const perSlice = 50

export function createSnapshots(options: {
  layout: Layout
  store: Store
  log: Logger
  fault: Fault
  now(): Date
}): Snapshots {
  const { layout, store, log, fault, now } = options
  const tasks = new Set<string>()
  const groups = new Set<string>()
  let background: string[] = []
  let callbacks: (() => void)[] = []
  let writtenAt = 0
  let cost = 0
  let timer: NodeJS.Timeout | undefined
  let slice: NodeJS.Immediate | undefined
  const syncedAt = { value: now().toISOString() }

  const write = (group: Group, file: OutgoingFile | undefined) => {
    if (!file) return
    const directory = join(layout.ipc, group.folder)
    try {
      if (isWritten(directory, file)) return
      post(directory, file.content, { name: file.path, staging: layout.staging, mode: 0o644 })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.warn({ group: group.folder, file: file.path, reason }, 'a snapshot could not be written')
    }
  }
  const writeTasks = (group: Group) =>
    write(
      group,
      dialects[group.dialect].tasks(
        store.tasks({ open: true, ...(group.main ? {} : { group: group.folder }) }),
        group,
      ),
    )
  const writeGroups = (group: Group) =>
    write(group, dialects[group.dialect].groups(store.groups(), group, syncedAt.value))

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (tasks.size > 0 || groups.size > 0) {
      const begin = performance.now()
      fault('snapshots')
      for (const group of store.groups()) {
        if (tasks.has(group.folder)) writeTasks(group)
        if (groups.has(group.folder)) writeGroups(group)
      }
      tasks.clear()
      groups.clear()
      writtenAt = performance.now()
      cost = writtenAt - begin
    }
    const ready = callbacks
    callbacks = []
    for (const callback of ready) callback()
  }

  const settle = (moreIsComing: boolean) => {
    if (tasks.size === 0 && groups.size === 0 && callbacks.length === 0) return
    const pause = Math.max(pauseMs, cost * 4)
    const left = writtenAt + pause - performance.now()
    if (!moreIsComing || left <= 0) return flush()
    timer ??= setTimeout(flush, left)
  }

  const nextSlice = () => {
    slice = undefined
    for (const folder of background.splice(-perSlice)) {
      const group = store.group(folder)
      if (!group) continue
      writeTasks(group)
      writeGroups(group)
    }
    if (background.length > 0) slice = setImmediate(nextSlice)
  }

  return {
    tasksChanged(folder) {
      tasks.add(folder)
      for (const group of store.groups()) if (group.main) tasks.add(group.folder)
    },
    groupsChanged() {
      syncedAt.value = now().toISOString()
      for (const group of store.groups()) if (group.main) groups.add(group.folder)
    },
    everything() {
      background = store.groups().map(group => group.folder)
      slice ??= setImmediate(nextSlice)
    },
    whenWritten: callback => void callbacks.push(callback),
    settle,
    flush,
    stop() {
      flush()
      clearImmediate(slice)
    },
  }
}

/** Whether the file is there already, word for word. A link, or anything that is no plain file, is not it. */
function isWritten(directory: string, file: OutgoingFile): boolean {
  const pinned = pinDirectory(directory)
  if (typeof pinned === 'string') return false
  try {
    const path = `${pinned.path}/${file.path}`
    const about = lstatSync(path, { throwIfNoEntry: false })
    if (!about?.isFile() || about.size !== Buffer.byteLength(file.content)) return false
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    return readFileSync(path, { encoding: 'utf8', flag }) === file.content
  } finally {
    pinned.close()
  }
}
