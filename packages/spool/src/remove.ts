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
  /** resolves when all files given so far are removed */
  settled(): Promise<void>
  close(): Promise<void>
}

const directLimit = 16
const idleMs = 100
/** Above this, files are sent to the thread without waiting for a pause. */
const queuedLimit = 100_000
/** Above this, files are removed synchronously, so that a flood cannot fill the spool with finished files. */
const backlogLimit = 150_000
/** `close` does not wait longer than this. The next process removes the rest. */
const closeTimeoutMs = 2000

export function createRemover(report: (message: string) => void): Remover {
  let worker: Worker | undefined
  let broken = false
  let closed = false
  /** finished files that still exist; `sentCount` of them were sent to the thread */
  let outstanding = 0
  let sentCount = 0
  let queued: (readonly string[])[] = []
  let sent: (readonly string[])[] = []
  let idleTimer: NodeJS.Timeout | undefined
  let waiters: (() => void)[] = []

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
  const settle = (count: number) => {
    outstanding -= count
    sentCount -= count
    if (outstanding > 0) return
    const resolved = waiters
    waiters = []
    for (const resolve of resolved) resolve()
  }
  const startWorker = () => {
    const started = new Worker(new URL('./remove-thread.ts', import.meta.url))
    started.unref()
    started.on('message', ({ count, problems }: { count: number; problems: string[] }) => {
      sent.shift()
      for (const problem of problems) report(problem)
      settle(count)
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
      settle(sentCount)
    })
    return started
  }
  const send = (paths: readonly string[]) => {
    sentCount += paths.length
    if (broken) {
      unlinkNow(paths)
      return settle(paths.length)
    }
    worker ??= startWorker()
    sent.push(paths)
    worker.postMessage(paths)
  }
  const sendAll = () => {
    const all = queued
    queued = []
    for (const paths of all) send(paths)
  }

  return {
    remove(paths) {
      if (paths.length <= directLimit || broken || closed || outstanding > backlogLimit)
        return unlinkNow(paths)
      outstanding += paths.length
      queued.push(paths)
      idleTimer = idleTimer?.refresh() ?? setTimeout(sendAll, idleMs).unref()
      while (outstanding - sentCount > queuedLimit) send(queued.shift() ?? [])
    },
    settled() {
      sendAll()
      return outstanding === 0 ? Promise.resolve() : new Promise(resolve => waiters.push(resolve))
    },
    async close() {
      closed = true
      clearTimeout(idleTimer)
      sendAll()
      if (outstanding > 0) {
        worker?.ref()
        let timeout: NodeJS.Timeout | undefined
        await new Promise<void>(resolve => {
          waiters.push(resolve)
          timeout = setTimeout(resolve, closeTimeoutMs)
        })
        clearTimeout(timeout)
      }
      await worker?.terminate()
      worker = undefined
    },
  }
}
