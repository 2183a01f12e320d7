import { randomUUID } from 'node:crypto'
import type { Group } from '@hatchway/protocol'
import { isStorageFailure } from '../../base/storage-failure.ts'
import type { CurrentRun } from '../../commands/types.ts'
import type { RunEnd } from '../scheduler/types.ts'
import { inputsAtOnce, type SessionEnd } from '../session.ts'
import { openSession } from './open-session.ts'
import type { NewRun } from './run-start.ts'
import type { Job, Place, QueuedSession, RunQueueOptions } from './types.ts'

const firstPauseMs = 1000
/** between two attempts where the disk has no room for a run */
const noRoomPauseMs = 2000

/**
 * Begins the next run of a group that has its turn: a task or what people wrote, whichever did not run last. False: the
 * group is no longer registered. Throws, with nothing begun, if the store fails.
 */
export function createBegin(
  options: RunQueueOptions,
  queue: {
    kick(): void
    /** the group wants to begin another run */
    join(folder: string): void
    pause(place: Place, ms: number): void
  },
): (place: Place) => boolean {
  const { store, log } = options
  const { kick, join, pause } = queue

  const begin = (place: Place): boolean => {
    const group = options.group(place.folder)
    if (!group) {
      for (const { done } of place.jobs) done(skipped('The group is no longer registered.'))
      return false
    }
    const rows = store.incoming({ group: place.folder, status: 'waiting', limit: inputsAtOnce })
    const job = place.jobs[0]
    if (job && (rows.length === 0 || !place.lastWasTask)) beginTask(place, group, job)
    else if (rows.length > 0) run(place, { id: randomUUID(), group, rows, job: undefined })
    return true
  }
  const beginTask = (place: Place, group: Group, job: Job) => {
    const id = randomUUID()
    // If this throws, nothing has begun, and the job stays where it is.
    const begun = job.begin(id)
    place.jobs.shift()
    join(place.folder)
    if (!begun.ok) {
      job.done(skipped(begun.reason))
      return kick()
    }
    try {
      run(place, { id, group, rows: [], job: { ...job, task: begun.task } })
    } catch (error) {
      // Nothing of it has begun: where the disk failed it is begun again.
      if (isStorageFailure(error)) place.jobs.unshift(job)
      else job.done(failed('The host could not begin the run.'))
      throw error
    }
  }

  const run = (place: Place, { job, ...rest }: NewRun) => {
    const about = { group: place.folder, run: rest.id }
    place.lastWasTask = job !== undefined
    const session = openSession(options, { job, ...rest }, place.failures, kick)
    place.session = session
    session.ended
      .then(end => {
        log.info({ ...about, error: end.error }, 'a session has ended')
        place.last = currentRun(session)
        place.session = undefined
        if (job) job.done(endOf(end))
        else pauseAfter(place, end)
      })
      .catch(error => {
        log.error({ err: error, ...about }, 'a session could not be ended properly')
        job?.done(failed('The host failed while the run ended.'))
      })
      .finally(() => {
        place.session = undefined
        if (place.jobs.length > 0) join(place.folder)
        kick()
        options.gone?.(place.folder, rest.id)
      })
      .catch(error => log.error({ err: error, ...about }, 'the end of a session could not be passed on'))
  }
  /** What a failed chat run left unanswered is tried again, after a pause. */
  const pauseAfter = (place: Place, end: SessionEnd) => {
    if (end.error === undefined || end.answered) place.failures = 0
    else if (end.hadNoRoom) pause(place, noRoomPauseMs)
    else pause(place, firstPauseMs * 4 ** place.failures++)
  }

  return begin
}

export const currentRun = ({ runId, kind, occurrenceId, isByDeploy }: QueuedSession): CurrentRun => ({
  id: runId,
  kind,
  occurrenceId,
  isByDeploy: isByDeploy(),
})

export const skipped = (reason: string): RunEnd => ({ status: 'skipped', result: null, error: reason })
const failed = (reason: string): RunEnd => ({ status: 'failed', result: null, error: reason })

const endOf = ({ error, result, woken }: SessionEnd): RunEnd => ({
  status: error !== undefined ? 'failed' : woken ? 'done' : 'skipped',
  result,
  error: error ?? null,
})
