import { Worker } from 'node:worker_threads'
import type { StoreFacts } from './inspect.ts'

export type LookTask =
  | { kind: 'look'; path: string }
  | { kind: 'settle'; path: string; seq: number; keepsSessions: boolean }
  | { kind: 'copy'; directory: string; names: readonly string[]; to: string }

function aside<T>(task: LookTask): Promise<T> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), { workerData: task })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', () => reject(new Error('The thread that looks at databases has ended.')))
  })
}

/** The same as in look.ts, in a thread of its own: for a daemon, which must not wait. */
export const lookAside = (path: string) => aside<StoreFacts>({ kind: 'look', path })
/** makes one file of a copy; the files behind its commands after `seq` */
export const settleAside = (path: string, options: { seq: number; keepsSessions: boolean }) =>
  aside<string[]>({ kind: 'settle', path, ...options })
export const copyAside = (directory: string, names: readonly string[], to: string) =>
  aside<null>({ kind: 'copy', directory, names, to })
