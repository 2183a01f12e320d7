import type { Task } from '@hatchway/protocol'
import { StoreFailure } from '../../base/storage-failure.ts'
import { nextRun } from '../../commands/schedule.ts'
import type { OccurrenceRow, TaskMove } from '../../store/types.ts'
import { following } from './following.ts'
import { newOccurrence } from './occurrence-runs.ts'
import type { SchedulerOptions } from './types.ts'

/** Decides what becomes of a task that is due, and stores that together with the task's next time. */
export interface Claims {
  /** Undefined: it is skipped, or the task is paused. Throws, with nothing done, if the store fails. */
  claim(task: Task, now: number): OccurrenceRow | undefined
  /** A clock that was ahead and was set right leaves times far away; what has run already stays claimed. */
  bringForward(now: number): void
}

interface ClaimsOptions extends Pick<SchedulerOptions, 'store' | 'config' | 'clock' | 'mayRun' | 'log'> {
  changed(folder: string): void
  pause(task: Task, note: string): void
  isUnderWay(taskId: string): boolean
}

/** so much later than due counts as missed: more than a busy minute, less than a host that was down */
const missedAfterMs = 60_000

export function createClaims(options: ClaimsOptions): Claims {
  const { store, config, clock, mayRun, changed, log } = options
  const { agents } = store

  const skip = (task: Task, dueAt: number, reason: string, move: TaskMove): undefined => {
    const now = clock.now()
    log.info({ task: task.id, group: task.group, reason, task_is: move.status }, 'a scheduled run is skipped')
    agents.claimOccurrence(
      newOccurrence(task, dueAt, now, { status: 'skipped', endedAt: now, error: reason }),
      move,
    )
    changed(task.group)
  }

  const claim = (task: Task, now: number): OccurrenceRow | undefined => {
    const dueAt = Date.parse(task.next_run ?? '')
    const move = following(task, dueAt, now)
    const refusal = mayRun(task)
    // An open task always has a next run; without one it could not be resumed once the reason is gone.
    if (refusal !== undefined)
      return skip(task, dueAt, refusal, { status: 'paused', nextRun: move.nextRun ?? dueAt, note: refusal })
    if (options.isUnderWay(task.id)) return skip(task, dueAt, 'The run before was still going on.', move)
    if (now - dueAt > missedAfterMs && config.agents.missed === 'skip') {
      const note = 'Its time passed while the host was not running.'
      return skip(task, dueAt, note, { ...move, ...(move.status === 'completed' && { note }) })
    }
    const occurrence = agents.claimOccurrence(newOccurrence(task, dueAt, clock.now()), move)
    changed(task.group)
    return occurrence
  }

  return {
    claim(task, now) {
      try {
        return claim(task, now)
      } catch (error) {
        if (error instanceof StoreFailure) throw error
        // One task that cannot be handled must not keep the others from running, nor be tried for ever.
        log.error({ err: error, task: task.id }, 'a task could not be handled and is paused')
        options.pause(task, 'The host failed to handle it; its log says more.')
        return undefined
      }
    },
    bringForward(now) {
      for (const task of store.tasks({ open: true })) {
        if (task.status !== 'active' || task.schedule_type === 'once' || task.next_run === null) continue
        const dueAt = Date.parse(task.next_run)
        const next = nextRun(task, new Date(now))
        if (!next.ok || next.at.getTime() >= dueAt) continue
        agents.moveTask(task.id, dueAt, { status: 'active', nextRun: next.at.getTime() })
        changed(task.group)
      }
    },
  }
}
