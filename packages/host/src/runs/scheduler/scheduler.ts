import type { Outcome, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { done, refused } from '../../base/outcome.ts'
import type { Retries } from '../../base/retry.ts'
import { StoreFailure } from '../../base/storage-failure.ts'
import { nextRun } from '../../commands/schedule.ts'
import type { Config } from '../../config.ts'
import type { OccurrenceRow, TaskMove } from '../../store/agent-types.ts'
import type { Store } from '../../store/types.ts'
import { following } from './following.ts'

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

export interface RunEnd {
  status: 'done' | 'failed' | 'skipped'
  result: string | null
  error: string | null
}

/** The task as it is at that moment, or why it is not to be run any more; that is noted already. */
export type Begun = { ok: true; task: Task } | { ok: false; reason: string }

export interface SchedulerOptions {
  store: Store
  config: { agents: Pick<Config['agents'], 'missed'> }
  log: Logger
  clock: Clock
  retries: Pick<Retries, 'untilStored'>
  /**
   * Runs one occurrence, perhaps after waiting for a free place. It calls `begin` right before anything of it starts,
   * and starts nothing if that says no.
   */
  run(occurrence: OccurrenceRow, task: Task, begin: (runId: string) => Begun): Promise<RunEnd>
  /** why a task may not run now, if so */
  mayRun(task: Task): string | undefined
  /** what a group's agents see of their tasks is different now */
  changed?(folder: string): void
}

const longestSleepMs = 60_000
/** so much later than due counts as missed: more than a busy minute, less than a host that was down */
const missedAfterMs = 60_000
/** a clock that goes back by less was only adjusted */
const setBackMs = 1000
/** so many are claimed in one go, as each is a commit and others want to go on */
const atATime = 20
const afterFailureMs = 5000

const stopped = 'The host stopped during the run.'

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { store, config, log, clock, retries, run, mayRun, changed = () => {} } = options
  const { agents } = store
  /** tasks with an occurrence that is claimed or running */
  const underWay = new Set<string>()
  const running = new Set<Promise<void>>()
  let state: 'new' | 'started' | 'stopped' = 'new'
  let seen = 0
  let callOff: (() => void) | undefined
  let soon = false

  const occurrenceOf = (task: Task, dueAt: number, more: Partial<OccurrenceRow>): OccurrenceRow => ({
    id: `${task.id}.${dueAt}`,
    taskId: task.id,
    group: task.group,
    dueAt,
    manual: false,
    status: 'claimed',
    runId: null,
    claimedAt: clock.now(),
    startedAt: null,
    endedAt: null,
    result: null,
    error: null,
    ...more,
  })

  const skip = (task: Task, dueAt: number, reason: string, move: TaskMove) => {
    log.info({ task: task.id, group: task.group, reason, task_is: move.status }, 'a scheduled run is skipped')
    agents.claimOccurrence(
      occurrenceOf(task, dueAt, { status: 'skipped', endedAt: clock.now(), error: reason }),
      move,
    )
    changed(task.group)
  }

  const claim = (task: Task, now: number) => {
    const dueAt = Date.parse(task.next_run ?? '')
    const move = following(task, dueAt, now)
    const refusal = mayRun(task)
    if (refusal !== undefined) {
      // An open task always has a next run; one that is over cannot be put right and resumed.
      skip(task, dueAt, refusal, { status: 'paused', nextRun: move.nextRun ?? dueAt, note: refusal })
    } else if (underWay.has(task.id)) {
      skip(task, dueAt, 'The run before was still going on.', move)
    } else if (now - dueAt > missedAfterMs && config.agents.missed === 'skip') {
      skip(task, dueAt, 'Its time passed while the host was not running.', {
        ...move,
        ...(move.status === 'completed' && { note: 'Its time passed while the host was not running.' }),
      })
    } else {
      const occurrence = agents.claimOccurrence(occurrenceOf(task, dueAt, {}), move)
      changed(task.group)
      if (occurrence) launch(occurrence, task)
    }
  }

  /** One task that cannot be dealt with must not keep the others from running, nor be tried for ever. */
  const claimOrPause = (task: Task, now: number) => {
    try {
      claim(task, now)
    } catch (error) {
      if (error instanceof StoreFailure) throw error
      log.error({ err: error, task: task.id }, 'a task could not be dealt with and is paused')
      pause(task, 'The host failed to deal with it; its log says more.')
    }
  }

  const pause = (task: Task, note: string) => {
    if (task.status !== 'active' || task.next_run === null) return
    const dueAt = Date.parse(task.next_run)
    agents.moveTask(task.id, dueAt, { status: 'paused', nextRun: dueAt, note })
    changed(task.group)
  }

  const launch = (occurrence: OccurrenceRow, task: Task) => {
    let progress: 'claimed' | 'begun' | 'over' = 'claimed'

    const end = (ending: RunEnd) => {
      progress = 'over'
      agents.endOccurrence(occurrence.id, { ...ending, endedAt: clock.now() })
      changed(occurrence.group)
    }
    const begin = (runId: string): Begun => {
      if (state === 'stopped') return { ok: false, reason: 'The host is stopping.' }
      const current = agents.task(task.id)
      const refusal = current && mayRun(current)
      const reason = !current ? 'The task is gone.' : (refusal ?? unwanted(current, occurrence))
      if (!current || reason !== undefined) {
        end({ status: 'skipped', result: null, error: reason ?? null })
        if (current && refusal !== undefined) pause(current, refusal)
        return { ok: false, reason: reason ?? '' }
      }
      agents.updateOccurrence(occurrence.id, { status: 'running', runId, startedAt: clock.now() })
      progress = 'begun'
      running.add(over)
      return { ok: true, task: current }
    }
    const work = async () => {
      try {
        const ending = await run(occurrence, task, begin).catch(
          (error: unknown): RunEnd => ({
            status: 'failed',
            result: null,
            error: error instanceof Error ? error.message : String(error),
          }),
        )
        // One that had not begun when the host stopped is for the next start.
        if (progress === 'over' || (progress === 'claimed' && state === 'stopped')) return
        await retries.untilStored('noting the end of a scheduled run', () => end(ending))
      } catch (error) {
        log.error({ err: error, occurrence: occurrence.id }, 'the end of a scheduled run could not be noted')
      } finally {
        underWay.delete(task.id)
        running.delete(over)
      }
    }
    underWay.add(task.id)
    // Not before it is noted: `run` may call back, or end, at once.
    const over: Promise<void> = Promise.resolve().then(work)
  }

  /** A clock that ran ahead and was put right leaves times far away; what has run already stays claimed. */
  const bringForward = (now: number) => {
    log.warn({ by: seen - now }, 'the clock was set back; schedules are looked at again')
    for (const task of store.tasks({ open: true })) {
      if (task.status !== 'active' || task.schedule_type === 'once' || task.next_run === null) continue
      const dueAt = Date.parse(task.next_run)
      const next = nextRun(task, new Date(now))
      if (!next.ok || next.at.getTime() >= dueAt) continue
      agents.moveTask(task.id, dueAt, { status: 'active', nextRun: next.at.getTime() })
      changed(task.group)
    }
  }

  /** how long to sleep; undefined: until kicked */
  const look = (): number | undefined => {
    const now = clock.now()
    if (now < seen - setBackMs) bringForward(now)
    seen = now
    const due = agents.dueTasks(now, atATime)
    for (const task of due) claimOrPause(task, now)
    if (due.length === atATime) return 0
    const next = agents.nextDue()
    return next === undefined ? undefined : Math.min(Math.max(next - clock.now(), 0), longestSleepMs)
  }

  const wakeIn = (ms: number | undefined) => {
    callOff?.()
    callOff = undefined
    soon = ms === 0
    if (ms === undefined || state !== 'started') return
    callOff = clock.setTimer(() => {
      callOff = undefined
      wakeIn(tryToLook())
    }, ms)
  }
  const tryToLook = (): number | undefined => {
    try {
      return look()
    } catch (error) {
      log.error({ err: error }, 'the schedule could not be looked at; it is tried again')
      return afterFailureMs
    }
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      seen = agents.occurrences({ limit: 1 })[0]?.claimedAt ?? 0
      for (const { id, group } of agents.occurrences({ status: 'running' })) {
        agents.endOccurrence(id, { status: 'failed', result: null, error: stopped, endedAt: clock.now() })
        changed(group)
      }
      for (const occurrence of agents.occurrences({ status: 'claimed' })) {
        const task = agents.task(occurrence.taskId)
        if (task) launch(occurrence, task)
      }
      wakeIn(0)
    },
    kick() {
      if (state === 'started' && !soon) wakeIn(0)
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
      const occurrence = occurrenceOf(task, now, { id: `${task.id}.${now}.now`, manual: true })
      if (underWay.has(task.id) || !agents.insertOccurrence(occurrence)) {
        return refused('wrong_state', 'The task is running already. Wait for its end.')
      }
      launch(occurrence, task)
      return done({ task_id: task.id, occurrence_id: occurrence.id })
    },
    async stop() {
      state = 'stopped'
      wakeIn(undefined)
      await Promise.all(running)
    },
  }
}

/** Why an occurrence that was claimed is not to be run any more, if so. Who asks for a run now may do so while paused. */
function unwanted({ status }: Task, { manual }: OccurrenceRow): string | undefined {
  if (status === 'cancelled') return 'The task was cancelled before it ran.'
  if (status === 'paused' && !manual) return 'The task was paused before it ran.'
  return undefined
}
