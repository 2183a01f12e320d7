import { reasonOf } from '@hatchway/spool'
import type { Logger } from 'pino'
import { pause } from './pause.ts'
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

/** The pause after the first failure, the second, …: it grows by a factor, up to a longest one. */
export const backoff =
  ({ firstMs, longestMs, factor = 2 }: { firstMs: number; longestMs: number; factor?: number }) =>
  (failures: number): number =>
    Math.min(longestMs, firstMs * factor ** (failures - 1))

const pauseAfter = backoff({ firstMs: 100, longestMs: 5000 })
const calmMs = 1000

export function createRetries(options: { log: Logger; now(): number }): Retries {
  const { log, now } = options
  const stopping = new AbortController()
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
  const untilStored: Retries['untilStored'] = async (what, work) => {
    let hasFailed = false
    try {
      for (let failures = 1; ; failures++) {
        try {
          const result = await work()
          if (hasFailed) waiting--
          hasFailed = false
          succeeded()
          return result
        } catch (error) {
          if (!isStorageFailure(error)) throw error
          failed(what, error)
          if (stopping.signal.aborted) throw error
        }
        if (!hasFailed) waiting++
        hasFailed = true
        await pause(pauseAfter(failures), stopping.signal)
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
      stopping.abort()
      clearTimeout(calm)
    },
  }
}
