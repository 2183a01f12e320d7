import type { Task } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import type { OccurrenceRow } from '../../store/types.ts'
import type { Begun, RunEnd, SchedulerOptions } from './types.ts'

/** Runs occurrences that are claimed, each once, and stores how they end. */
export interface OccurrenceRuns {
  run(occurrence: OccurrenceRow, task: Task): void
  /** whether an occurrence of the task is claimed or running */
  isUnderWay(taskId: string): boolean
  /** resolves when every run that has begun has ended */
  allEnded(): Promise<void>
}

interface OccurrenceRunsOptions
  extends Pick<SchedulerOptions, 'store' | 'clock' | 'retries' | 'run' | 'mayRun' | 'log'> {
  changed(folder: string): void
  pause(task: Task, note: string): void
  isStopped(): boolean
}

export function createOccurrenceRuns(options: OccurrenceRunsOptions): OccurrenceRuns {
  const { store, clock, retries, run, mayRun, log, isStopped } = options
  const { agents } = store
  const underWay = new Set<string>()
  const begun = new Set<Promise<void>>()

  const start = (occurrence: OccurrenceRow, task: Task) => {
    let progress: 'claimed' | 'begun' | 'over' = 'claimed'

    const end = (ending: RunEnd) => {
      progress = 'over'
      agents.endOccurrence(occurrence.id, { ...ending, endedAt: clock.now() })
      options.changed(occurrence.group)
    }
    const begin = (runId: string): Begun => {
      if (isStopped()) return { ok: false, reason: 'The host is stopping.' }
      const current = agents.task(task.id)
      const refusal = current && mayRun(current)
      const reason = !current ? 'The task is gone.' : (refusal ?? reasonToSkip(current, occurrence))
      if (!current || reason !== undefined) {
        end({ status: 'skipped', result: null, error: reason ?? null })
        if (current && refusal !== undefined) options.pause(current, refusal)
        return { ok: false, reason: reason ?? '' }
      }
      agents.updateOccurrence(occurrence.id, { status: 'running', runId, startedAt: clock.now() })
      progress = 'begun'
      begun.add(over)
      return { ok: true, task: current }
    }
    const work = async () => {
      try {
        const ending = await run(occurrence, task, begin).catch(
          (error: unknown): RunEnd => ({
            status: 'failed',
            result: null,
            error: reasonOf(error),
          }),
        )
        // One that had not begun when the host stopped is for the next start.
        if (progress === 'over' || (progress === 'claimed' && isStopped())) return
        await retries.untilStored('noting the end of a scheduled run', () => end(ending))
      } catch (error) {
        log.error({ err: error, occurrence: occurrence.id }, 'the end of a scheduled run could not be noted')
      } finally {
        underWay.delete(task.id)
        begun.delete(over)
      }
    }
    underWay.add(task.id)
    // Not before it is noted: `run` may call back, or end, at once.
    const over: Promise<void> = Promise.resolve().then(work)
  }

  return {
    run: start,
    isUnderWay: taskId => underWay.has(taskId),
    async allEnded() {
      await Promise.all(begun)
    },
  }
}

export const newOccurrence = (
  task: Task,
  dueAt: number,
  now: number,
  more: Partial<OccurrenceRow> = {},
): OccurrenceRow => ({
  id: `${task.id}.${dueAt}`,
  taskId: task.id,
  group: task.group,
  dueAt,
  manual: false,
  status: 'claimed',
  runId: null,
  claimedAt: now,
  startedAt: null,
  endedAt: null,
  result: null,
  error: null,
  ...more,
})

/** Why a claimed occurrence is skipped, if so. Who asks for a run now may do so while the task is paused. */
function reasonToSkip({ status }: Task, { manual }: OccurrenceRow): string | undefined {
  if (status === 'cancelled') return 'The task was cancelled before it ran.'
  if (status === 'paused' && !manual) return 'The task was paused before it ran.'
  return undefined
}
