import { unlinkSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { errorCode } from './directory.ts'

/**
 * Takes claimed files off the disk. A few are unlinked at once; many are kept until it is calm and then given to a
 * thread. Unlinking can cost several times what claiming does (measured.md), slows it down even from another thread, by
 * a sixth, and nobody waits for it: a file that is still there after a crash is found in the consumer's journal and
 * removed then.
 */
export interface Remover {
  remove(paths: readonly string[]): void
  /** resolves when everything given so far is gone */
  settled(): Promise<void>
  close(): Promise<void>
}

const few = 16
const calmMs = 100
/** Beyond this the thread begins, calm or not. */
const keptLimit = 100_000
/** Beyond this the claimer is made to wait, so that a flood cannot fill the spool with files that are done with. */
const backlogLimit = 150_000
/** Who stops is not kept waiting for long: what is left is removed by the next consumer, which finds it done. */
const farewellMs = 2000

export function createRemover(failed: (message: string) => void): Remover {
  let worker: Worker | undefined
  let broken = false
  let closed = false
  /** finished files that are still there, and how many of them the thread has been given */
  let outstanding = 0
  let givenCount = 0
  let kept: (readonly string[])[] = []
  let given: (readonly string[])[] = []
  let calm: NodeJS.Timeout | undefined
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
    givenCount -= count
    if (outstanding > 0) return
    const resolved = waiting
    waiting = []
    for (const resolve of resolved) resolve()
  }
  const start = () => {
    const started = new Worker(new URL('./remove-thread.ts', import.meta.url))
    started.unref()
    started.on('message', ({ count, problems }: { count: number; problems: string[] }) => {
      given.shift()
      for (const problem of problems) failed(problem)
      settle(count)
    })
    started.on('error', error => {
      broken = true
      worker = undefined
      failed(
        `The thread that removes finished files has ended (${error.message}); they are removed in turn instead.`,
      )
      const left = given
      given = []
      for (const paths of left) unlinkNow(paths)
      settle(givenCount)
    })
    return started
  }
  const give = (paths: readonly string[]) => {
    givenCount += paths.length
    if (broken) {
      unlinkNow(paths)
      return settle(paths.length)
    }
    worker ??= start()
    given.push(paths)
    worker.postMessage(paths)
  }
  const giveAll = () => {
    const all = kept
    kept = []
    for (const paths of all) give(paths)
  }

  return {
    remove(paths) {
      if (paths.length <= few || broken || closed || outstanding > backlogLimit) return unlinkNow(paths)
      outstanding += paths.length
      kept.push(paths)
      calm = calm?.refresh() ?? setTimeout(giveAll, calmMs).unref()
      while (outstanding - givenCount > keptLimit) give(kept.shift() ?? [])
    },
    settled() {
      giveAll()
      return outstanding === 0 ? Promise.resolve() : new Promise(resolve => waiting.push(resolve))
    },
    async close() {
      closed = true
      clearTimeout(calm)
      giveAll()
      if (outstanding > 0) {
        worker?.ref()
        let late: NodeJS.Timeout | undefined
        await new Promise<void>(resolve => {
          waiting.push(resolve)
          late = setTimeout(resolve, farewellMs)
        })
        clearTimeout(late)
      }
      await worker?.terminate()
      worker = undefined
    },
  }
}
