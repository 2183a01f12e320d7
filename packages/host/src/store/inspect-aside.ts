import { createThread, ThreadFailed } from '../base/thread.ts'
import type { StoreFacts } from './inspect.ts'

export type LookTask =
  | { kind: 'look'; path: string }
  | { kind: 'settle'; path: string; seq: number; keepsSessions: boolean }
  | { kind: 'copy'; directory: string; names: readonly string[]; to: string }

async function aside<T>(task: LookTask): Promise<T> {
  const thread = createThread<LookTask, T>({ file: new URL('./inspect-thread.ts', import.meta.url) })
  try {
    return await thread.ask(task)
  } catch (error) {
    // What went wrong in the thread is told as if it had gone wrong here.
    throw error instanceof ThreadFailed ? (error.cause ?? error) : error
  } finally {
    await thread.close()
  }
}

/** The same as in inspect.ts, in a thread of its own: for a daemon, which must not wait. */
export const inspectAside = (path: string) => aside<StoreFacts>({ kind: 'look', path })
/** makes one file of a copy; the files behind its commands after `seq` */
export const settleAside = (path: string, options: { seq: number; keepsSessions: boolean }) =>
  aside<string[]>({ kind: 'settle', path, ...options })
export const copyAside = (directory: string, names: readonly string[], to: string) =>
  aside<void>({ kind: 'copy', directory, names, to })
