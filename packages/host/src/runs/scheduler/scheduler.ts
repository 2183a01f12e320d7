import type { Outcome, Task } from '@hatchway/protocol'
import { done, refused } from '../../base/outcome.ts'
import { createClaims } from './claims.ts'
import { createOccurrenceRuns, newOccurrence } from './occurrence-runs.ts'
import type { SchedulerOptions } from './types.ts'

/**
 * Runs tasks when they are due. Each time a task is due is an occurrence with an id made of the task and the time, and
 * goes this way, once:
 *
 *   due → claimed      the task moves on to its next time in the same commit, so nobody finds it due again
 *   due → skipped      missed while the host was down (`agents.missed: skip`), the run before is still going on, or
 *                      there are no rights any more; in that case the task is paused, too
 *   claimed → running  by `begin`, at the moment the run really starts; rights are looked at again
 *   claimed → skipped  paused, cancelled or without rights while it waited for its turn
 *   running → done, failed, skipped      as the run says (skipped: its script did not wake the agent)
 *
 * A host that died comes back to these: what was claimed had not started and runs now; what was running may have had
 * effects, so it failed and is not run twice (promise 3). What became due meanwhile runs once, however often it was due.
 *
 * The scheduler sleeps until the next task is due, but never longer than `longestSleepMs`: a machine that slept, a
 * clock that was set and a timer that would overflow are all noticed then.
 */
export interface Scheduler {
  /** finishes what an earlier process left, then begins to run what is due */
  start(): void
  /** tasks have changed: looks again when the next one is due */
  kick(): void
  /** runs a task now, beside its schedule */
  runNow(taskId: string): Outcome
  /** starts nothing more from this moment; resolves when what has begun has ended */
  stop(): Promise<void>
}

const longestSleepMs = 60_000
/** a clock that goes back by less was only adjusted */
const setBackMs = 1000
/** occurrences that are claimed in one go: each is a commit, and others want to go on */
const atATime = 20
const afterFailureMs = 5000

const stoppedDuringRun = 'The host stopped during the run.'

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { log, clock, mayRun, changed = () => {} } = options
  const { agents } = options.store
  let state: 'new' | 'started' | 'stopped' = 'new'
  let seen = 0
  let cancelTimer: (() => void) | undefined
  let isSoon = false

  const pause = (task: Task, note: string) => {
    if (task.status !== 'active' || task.next_run === null) return
    const dueAt = Date.parse(task.next_run)
    agents.moveTask(task.id, dueAt, { status: 'paused', nextRun: dueAt, note })
    changed(task.group)
  }

  const occurrences = createOccurrenceRuns({
    ...options,
    changed,
    pause,
    isStopped: () => state === 'stopped',
  })
  const claims = createClaims({ ...options, changed, pause, isUnderWay: occurrences.isUnderWay })

  /** how long to sleep; undefined: until kicked */
  const check = (): number | undefined => {
    const now = clock.now()
    if (now < seen - setBackMs) {
      log.warn({ by: seen - now }, 'the clock was set back; schedules are calculated again')
      claims.bringForward(now)
    }
    seen = now
    const due = agents.dueTasks(now, atATime)
    for (const task of due) {
      const occurrence = claims.claim(task, now)
      if (occurrence) occurrences.run(occurrence, task)
    }
    if (due.length === atATime) return 0
    const next = agents.nextDue()
    return next === undefined ? undefined : Math.min(Math.max(next - clock.now(), 0), longestSleepMs)
  }

  const wakeIn = (ms: number | undefined) => {
    cancelTimer?.()
    cancelTimer = undefined
    isSoon = ms === 0
    if (ms === undefined || state !== 'started') return
    cancelTimer = clock.setTimer(() => {
      cancelTimer = undefined
      wakeIn(tryToCheck())
    }, ms)
  }
  const tryToCheck = (): number | undefined => {
    try {
      return check()
    } catch (error) {
      log.error({ err: error }, 'the schedule could not be checked; it is tried again')
      return afterFailureMs
    }
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      seen = agents.occurrences({ limit: 1 })[0]?.claimedAt ?? 0
      for (const { id, group } of agents.occurrences({ status: 'running' })) {
        agents.endOccurrence(id, {
          status: 'failed',
          result: null,
          error: stoppedDuringRun,
          endedAt: clock.now(),
        })
        changed(group)
      }
      for (const occurrence of agents.occurrences({ status: 'claimed' })) {
        const task = agents.task(occurrence.taskId)
        if (task) occurrences.run(occurrence, task)
      }
      wakeIn(0)
    },
    kick() {
      if (state === 'started' && !isSoon) wakeIn(0)
    },
    runNow(taskId) {
      const task = agents.task(taskId)
      if (!task) return refused('not_found', 'There is no task with this id.')
      if (state !== 'started') return refused('unavailable', 'No agents are run here at the moment.')
      if (task.status !== 'active' && task.status !== 'paused') {
        return refused('wrong_state', `The task is ${task.status} and stays so. Schedule a new one.`)
      }
      const refusal = mayRun(task)
      if (refusal !== undefined) return refused('forbidden', refusal)
      const now = clock.now()
      const occurrence = newOccurrence(task, now, now, { id: `${task.id}.${now}.now`, manual: true })
      if (occurrences.isUnderWay(task.id) || !agents.insertOccurrence(occurrence)) {
        return refused('wrong_state', 'The task is running already. Wait for its end.')
      }
      occurrences.run(occurrence, task)
      return done({ task_id: task.id, occurrence_id: occurrence.id })
    },
    async stop() {
      state = 'stopped'
      wakeIn(undefined)
      await occurrences.allEnded()
    },
  }
}
