import type { Logger } from 'pino'
import { isStorageFailure } from './storage-failure.ts'

/**
 * Work that has to be done sooner or later, whatever the disk and the database do at the moment. A full disk must not
 * end the daemon, and what it kept from happening has to happen once there is room: such work is tried again, with
 * growing pauses, until it succeeds or the host stops. What is left then is found again at the next start.
 */
export interface Retries {
  /**
   * Does the work now, and again for as long as the disk or the database fails; it has to be repeatable. Rejects with
   * any other failure, and where the host stops first.
   */
  untilStored<T>(what: string, work: () => T | Promise<T>): Promise<T>
  /** the same for whoever does not wait for it: what else goes wrong is logged */
  inBackground(what: string, work: () => unknown): void
  /** a failure that somebody else tries again: it counts as a problem until `succeeded`, and until nothing waits here */
  failed(what: string, error: unknown): void
  succeeded(): void
  /** that the data directory cannot be written, since when and why, for people; undefined: it can */
  problem(): string | undefined
  stop(): void
}

const firstPauseMs = 100
const longestPauseMs = 5000
const calmMs = 1000

export function createRetries(options: { log: Logger; now(): number }): Retries {
  const { log, now } = options
  const pauses = new Set<() => void>()
  let isStopping = false
  let waiting = 0
  let failedAt = 0
  let calm: NodeJS.Timeout | undefined
  let problem: { since: string; reason: string } | undefined

  const failed = (what: string, error: unknown) => {
    failedAt = performance.now()
    if (problem) return
    problem = { since: new Date(now()).toISOString(), reason: reasonOf(error) }
    // Said once and not at every attempt: a log is a disk that can be filled, too.
    log.error(
      { what, reason: problem.reason },
      'the data directory cannot be written; what fails is tried again',
    )
  }
  const succeeded = () => {
    if (!problem || waiting > 0) return
    // Small commits may still find room where large ones do not: it is over when nothing fails for a while.
    if (performance.now() - failedAt < calmMs) {
      calm ??= setTimeout(() => {
        calm = undefined
        succeeded()
      }, calmMs).unref()
      return
    }
    log.warn({ since: problem.since }, 'the data directory can be written again')
    problem = undefined
  }
  const pause = (ms: number) =>
    new Promise<void>(resolve => {
      const end = () => {
        clearTimeout(timer)
        pauses.delete(end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      pauses.add(end)
    })

  const untilStored: Retries['untilStored'] = async (what, work) => {
    let hasFailed = false
    try {
      for (let ms = firstPauseMs; ; ms = Math.min(longestPauseMs, ms * 2)) {
        try {
          const result = await work()
          if (hasFailed) waiting--
          hasFailed = false
          succeeded()
          return result
        } catch (error) {
          if (!isStorageFailure(error)) throw error
          failed(what, error)
          if (isStopping) throw error
        }
        if (!hasFailed) waiting++
        hasFailed = true
        await pause(ms)
      }
    } finally {
      if (hasFailed) waiting--
    }
  }

  return {
    untilStored,
    inBackground: (what, work) =>
      void untilStored(what, work).catch(error => log.error({ err: error }, `${what} failed`)),
    failed,
    succeeded,
    problem: () =>
      problem &&
      `The data directory cannot be written since ${problem.since} (${problem.reason}). Nothing is lost: what comes in waits, and is taken as soon as there is room again. Make room on its disk.`,
    stop() {
      isStopping = true
      clearTimeout(calm)
      for (const end of pauses) end()
    },
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
