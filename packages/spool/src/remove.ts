import { unlinkSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { errorCode } from './directory.ts'

/**
 * Takes claimed files off the disk. A few are unlinked at once; many are given to a thread, because unlinking can
 * cost several times what claiming does (measured.md) and nobody waits for it: a file that is still there after a
 * crash is found in the consumer's journal and removed then.
 */
export interface Remover {
  remove(paths: readonly string[]): void
  /** resolves when everything given so far is gone */
  settled(): Promise<void>
  close(): Promise<void>
}

const few = 16
/** Beyond this the claimer is made to wait, so that a flood cannot fill the spool with files that are done with. */
const backlogLimit = 100_000

export function createRemover(failed: (message: string) => void): Remover {
  let worker: Worker | undefined
  let broken = false
  let closed = false
  let outstanding = 0
  let waiting: (() => void)[] = []

  const unlinkNow = (paths: readonly string[]) => {
    for (const path of paths) {
      try {
        unlinkSync(path)
      } catch (error) {
        if (errorCode(error) !== 'ENOENT')
          failed(`A finished file stays in the spool (${errorCode(error)}): ${path}`)
      }
    }
  }
  const settle = (count: number) => {
    outstanding -= count
    if (outstanding > 0) return
    const resolved = waiting
    waiting = []
    for (const resolve of resolved) resolve()
  }
  const start = () => {
    const started = new Worker(new URL('./remove-thread.ts', import.meta.url))
    started.unref()
    started.on('message', ({ count, problems }: { count: number; problems: string[] }) => {
      for (const problem of problems) failed(problem)
      settle(count)
    })
    started.on('error', error => {
      broken = true
      worker = undefined
      failed(
        `The thread that removes finished files has ended (${error.message}); they are removed in turn instead.`,
      )
      settle(outstanding)
    })
    return started
  }

  return {
    remove(paths) {
      if (paths.length <= few || broken || closed || outstanding > backlogLimit) return unlinkNow(paths)
      worker ??= start()
      outstanding += paths.length
      worker.postMessage(paths)
    },
    settled: () => (outstanding === 0 ? Promise.resolve() : new Promise(resolve => waiting.push(resolve))),
    async close() {
      closed = true
      if (outstanding > 0) {
        worker?.ref()
        await new Promise<void>(resolve => waiting.push(resolve))
      }
      await worker?.terminate()
      worker = undefined
    },
  }
}
