import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommandType, commandSchema, type Group, type Outcome, type Task } from '@hatchway/protocol'
import { pino } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { createRetries } from '../../base/retry.ts'
import { kernelCommands } from '../../commands/index.ts'
import { createCommands } from '../../commands/registry.ts'
import { configSchema } from '../../config.ts'
import { openStore } from '../../store/sqlite.ts'
import { groupOf } from '../../store/testing.ts'
import type { OccurrenceRow } from '../../store/types.ts'
import { rightsOf } from './rights.ts'
import { createScheduler } from './scheduler.ts'
import type { RunEnd, SchedulerOptions } from './types.ts'

/** A clock that goes when it is told to. */
function createTestClock(start: number) {
  let wall = start
  let elapsed = 0
  let count = 0
  const timers = new Map<number, { at: number; callback: () => void }>()
  const clock: Clock = {
    now: () => wall,
    setTimer(callback, ms) {
      const id = count++
      timers.set(id, { at: elapsed + ms, callback })
      return () => timers.delete(id)
    },
  }
  const settle = () => new Promise(resolve => setImmediate(resolve))

  return {
    clock,
    settle,
    /** the time passes, and with it everything that waits for it */
    async pass(ms: number) {
      const until = elapsed + ms
      await settle()
      for (;;) {
        let first: [number, { at: number; callback: () => void }] | undefined
        for (const entry of timers) if (!first || entry[1].at < first[1].at) first = entry
        if (!first || first[1].at > until) break
        timers.delete(first[0])
        wall += first[1].at - elapsed
        elapsed = first[1].at
        first[1].callback()
        await settle()
      }
      wall += until - elapsed
      elapsed = until
    },
    /** the clock is set, or the machine slept: timers know nothing of it */
    jump: (ms: number) => {
      wall += ms
    },
    /** the longest anybody sleeps; 0: nobody waits for anything */
    sleeping: () => Math.max(0, ...[...timers.values()].map(({ at }) => at - elapsed)),
    /** a process that dies takes its timers with it */
    forget: () => timers.clear(),
  }
}

export interface Started {
  occurrence: OccurrenceRow
  task: Task
  /** by the clock on the wall */
  at: number
}

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

const quiet = pino({ level: 'silent' })

/** A scheduler on a real store with a clock of its own, that can be killed and started again. */
export function openBench(
  options: {
    start?: string
    missed?: 'once' | 'skip'
    /** left out: it begins and ends at once */
    run?: (started: Started, begin: Parameters<SchedulerOptions['run']>[2]) => Promise<RunEnd>
  } = {},
) {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-scheduler-'))
  const path = join(directory, 'hatchway.db')
  const time = createTestClock(Date.parse(options.start ?? '2026-01-15T12:00:00Z'))
  const begun: Started[] = []
  const changed = new Set<string>()
  let runs = 0
  let seq = 0
  let store = openStore({ path, durability: 'process', prepare: false })
  let running = true

  const atOnce = async ({ task }: Started): Promise<RunEnd> => ({
    status: 'done',
    result: `did ${task.prompt}`,
    error: null,
  })
  const create = () => {
    const process = store
    return createScheduler({
      store: process,
      config: { agents: { missed: options.missed ?? 'once' } },
      log: quiet,
      clock: time.clock,
      retries: createRetries({ log: quiet, now: time.clock.now }),
      mayRun: rightsOf(process),
      changed: folder => changed.add(folder),
      run(occurrence, task, begin) {
        const started = { occurrence, task, at: time.clock.now() }
        const note = (runId: string) => {
          const answer = begin(runId)
          if (answer.ok) begun.push({ ...started, at: time.clock.now() })
          return answer
        }
        if (options.run) return options.run(started, note)
        return note(`run-${++runs}`).ok ? atOnce(started) : Promise.reject(new Error('not begun'))
      },
    })
  }
  let scheduler = create()

  return {
    time,
    begun,
    changed,
    get store() {
      return store
    },
    get agents() {
      return store.agents
    },
    get scheduler() {
      return scheduler
    },
    addGroup: (folder: string, more: Partial<Group> = {}) =>
      store.transaction(transaction => transaction.insertGroup(groupOf(folder, more))),
    /** what a group, or the operator, asks for, as it would come through the hatch */
    async ask(who: string, type: CommandType, payload: object): Promise<Outcome> {
      const command = commandSchema.parse({ type, payload })
      const outcome = store.transaction(transaction => {
        const group = transaction.group(who)
        return createCommands(kernelCommands).perform(command, {
          transaction,
          actor: group ? { kind: 'group', group } : { kind: 'operator' },
          seq: ++seq,
          now: new Date(time.clock.now()),
          timezone: 'UTC',
          limits: configSchema.parse({}).limits,
          effect: effect => effect.kind === 'tasks_changed' && scheduler.kick(),
        })
      })
      if (!outcome) throw new Error(`${type} is answered later`)
      return outcome
    },
    dueTimes: (taskId: string) =>
      begun
        .filter(({ task }) => task.id === taskId)
        .map(({ occurrence }) => new Date(occurrence.dueAt).toISOString()),
    /** what was on its way is lost, as after `kill -9`; nothing of the old process moves any more */
    kill() {
      time.forget()
      store.close()
      running = false
    },
    revive() {
      store = openStore({ path, durability: 'process', prepare: false })
      running = true
      scheduler = create()
      scheduler.start()
    },
    [Symbol.dispose]() {
      time.forget()
      if (running) store.close()
      rmSync(directory, { recursive: true })
    },
  }
}
