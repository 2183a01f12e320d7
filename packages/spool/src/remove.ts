import { unlinkSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { errorCode } from './directory.ts'

/**
 * Removes claimed files that are done.
 *
 *   few files   removed at once
 *   many files  queued → sent to a worker thread when no more come for `idleMs`, or when too many are queued → removed
 *
 * Unlinking can take several times as long as claiming, and slows claims down even from another thread. Nobody waits
 * for it: after a crash the consumer finds the remaining files in its journal and discards them again.
 */
export interface Remover {
  remove(paths: readonly string[]): void
  /** resolves when all files given so far are removed, or after `closeTimeoutMs`: the next process removes the rest */
  close(): Promise<void>
}

const directLimit = 16
const idleMs = 100
/** Above this, files are sent to the thread without waiting for a pause. */
const queuedLimit = 100_000
/** Above this, files are removed synchronously, so that a flood cannot fill the spool with finished files. */
const backlogLimit = 150_000
export function createRemover(
  report: (message: string) => void,
  { closeTimeoutMs = 2000 }: { closeTimeoutMs?: number } = {},
): Remover {
  let closed = false
  /** finished files that still exist */
  let outstanding = 0
  let queued: (readonly string[])[] = []
  let idleTimer: NodeJS.Timeout | undefined
  let allRemoved: (() => void) | undefined

  const unlinkNow = (paths: readonly string[]) => {
    for (const path of paths) {
      try {
        unlinkSync(path)
      } catch (error) {
        if (errorCode(error) !== 'ENOENT')
          report(`A finished file could not be removed from the spool (${errorCode(error)}): ${path}`)
      }
    }
  }
  const removed = (count: number) => {
    outstanding -= count
    if (outstanding === 0) allRemoved?.()
  }
  const thread = createRemoveThread({ unlinkNow, removed, report })
  const sendAll = () => {
    const all = queued
    queued = []
    for (const paths of all) thread.send(paths)
  }

  return {
    remove(paths) {
      if (paths.length <= directLimit || thread.isBroken() || closed || outstanding > backlogLimit)
        return unlinkNow(paths)
      outstanding += paths.length
      queued.push(paths)
      idleTimer = idleTimer?.refresh() ?? setTimeout(sendAll, idleMs).unref()
      while (outstanding - thread.sentCount() > queuedLimit) thread.send(queued.shift() ?? [])
    },
    async close() {
      closed = true
      clearTimeout(idleTimer)
      sendAll()
      if (outstanding > 0) {
        thread.ref()
        let timeout: NodeJS.Timeout | undefined
        await new Promise<void>(resolve => {
          allRemoved = resolve
          timeout = setTimeout(resolve, closeTimeoutMs)
        })
        clearTimeout(timeout)
      }
      await thread.close()
    },
  }
}

/** The thread: none → running when the first files are sent → broken if it fails, and files are removed here. */
function createRemoveThread(options: {
  unlinkNow(paths: readonly string[]): void
  removed(count: number): void
  report(message: string): void
}) {
  const { unlinkNow, report } = options
  let worker: Worker | undefined
  let broken = false
  let sent: (readonly string[])[] = []
  let sentCount = 0

  const removed = (count: number) => {
    sentCount -= count
    options.removed(count)
  }
  const start = () => {
    const started = new Worker(new URL('./remove-thread.ts', import.meta.url))
    started.unref()
    started.on('message', ({ count, problems }: { count: number; problems: string[] }) => {
      sent.shift()
      for (const problem of problems) report(problem)
      removed(count)
    })
    started.on('error', error => {
      broken = true
      worker = undefined
      report(
        `The thread that removes finished files failed (${error.message}); the main thread removes them instead.`,
      )
      const left = sent
      sent = []
      for (const paths of left) unlinkNow(paths)
      removed(sentCount)
    })
    return started
  }
  return {
    isBroken: () => broken,
    /** files that were sent and still exist */
    sentCount: () => sentCount,
    send(paths: readonly string[]) {
      sentCount += paths.length
      if (broken) {
        unlinkNow(paths)
        return removed(paths.length)
      }
      worker ??= start()
      sent.push(paths)
      worker.postMessage(paths)
    },
    /** the process waits for it from now on */
    ref: () => worker?.ref(),
    async close() {
      await worker?.terminate()
      worker = undefined
    },
  }
}
