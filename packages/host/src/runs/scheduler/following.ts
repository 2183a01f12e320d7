import type { Task } from '@hatchway/protocol'
import { nextRun } from '../../commands/schedule.ts'
import type { TaskMove } from '../../store/types.ts'

/**
 * What becomes of a task once its occurrence at `dueAt` is claimed at `now`: due again, always later than both, or
 * completed. What lay in between is not made up for. A clock that was set back brings nothing forward.
 */
export function following(task: Task, dueAt: number, now: number): TaskMove {
  if (task.schedule_type === 'once') return { status: 'completed', nextRun: null }
  const after = task.schedule_type === 'interval' ? lastOnGrid(task, dueAt, now) : Math.max(dueAt, now)
  const next = nextRun(task, new Date(after))
  return next.ok
    ? { status: 'active', nextRun: next.at.getTime() }
    : { status: 'completed', nextRun: null, note: next.error.message }
}

/** Intervals count from when the last one was due, not from when it was noticed, so that they do not drift. */
function lastOnGrid(task: Task, dueAt: number, now: number): number {
  const interval = Number(task.schedule_value)
  if (now < dueAt || !(interval > 0)) return dueAt
  return dueAt + Math.floor((now - dueAt) / interval) * interval
}
