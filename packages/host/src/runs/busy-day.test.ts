import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'
import type { Clock } from '../base/clock.ts'
import { createOwners } from '../base/owners.ts'
import { createRetries } from '../base/retry.ts'
import { createProcessSandbox } from '../sandboxes/process.ts'
import { createPositions } from '../store/positions.ts'
import { createInputBox } from './input-box.ts'
import { createLaunch } from './launch.ts'
import { createRunQueue } from './run-queue.ts'
import { rightsOf } from './scheduler/rights.ts'
import { createScheduler } from './scheduler/scheduler.ts'

/**
 * A day of 80 groups with nothing simulated but the time: the schedules come through the hatch as agents send them, and
 * every run is the bundled agent in a process of its own. 110 runs; src/scheduler/day.test.ts has many more,
 * with sessions that only wait.
 */
const groups = 80
const atOnce = 10
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const quiet = pino({ level: 'silent' })

/** Goes on when it is told to. A timer that the time has passed fires then. */
function createDayClock(start: number) {
  let now = start
  const timers = new Set<{ at: number; callback: () => void }>()
  const clock: Clock = {
    now: () => now,
    setTimer(callback, ms) {
      const timer = { at: now + ms, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  }
  return {
    clock,
    /** to the next moment that somebody waits for; false: nobody waits for anything before `end` */
    goOn(end: number): boolean {
      const [first] = [...timers].sort((a, b) => a.at - b.at)
      if (!first || first.at > end) return false
      now = Math.max(now, first.at)
      timers.delete(first)
      first.callback()
      return true
    },
  }
}

interface Planned {
  folder: string
  task: { task_id: string; schedule_type: string; schedule_value: string }
  times: number
}

/** Nothing is due within minutes of the day's beginning or end: the schedules take a while to be made. */
function plan(start: number): Planned[] {
  const at = (hours: number) => new Date(Math.ceil((start + hours * hour) / minute) * minute)
  const daily = (time: Date) => `${time.getUTCMinutes()} ${time.getUTCHours()} * * *`
  return Array.from({ length: groups }, (_, i): Planned => {
    const folder = `g${i}`
    const task = (schedule_type: string, schedule_value: string) => ({
      task_id: `${folder}-task`,
      schedule_type,
      schedule_value,
    })
    // Ten groups, four times a day.
    if (i < 10) return { folder, task: task('interval', String(5 * hour)), times: 4 }
    // Forty at the same moment, so that most have to wait for a place.
    if (i < 50) return { folder, task: task('cron', daily(at(12.5))), times: 1 }
    const time = at(1 + (i % 15) * 1.5)
    return i % 2 === 0
      ? { folder, task: task('once', time.toISOString()), times: 1 }
      : { folder, task: task('cron', daily(time)), times: 1 }
  })
}

const receipt = z.object({ id: z.string(), ok: z.literal(true) })
const freshName = createNames()

/** As an agent asks for it: a file, and a receipt for it. */
async function schedule(live: Live, planned: readonly Planned[]): Promise<void> {
  const asked = planned.map(({ folder, task }) => {
    const id = randomUUID()
    const payload = { ...task, prompt: `Remind: ${folder}`, context_mode: 'isolated', timezone: 'UTC' }
    const ipc = join(live.layout.ipc, folder)
    const body = JSON.stringify({ version: 1, id, type: 'schedule_task', payload })
    post(join(ipc, 'tasks'), body, { name: freshName() })
    return { id, path: join(ipc, 'responses', `${id}.json`) }
  })
  await until('all is answered', () => asked.every(({ path }) => existsSync(path)))
  for (const { id, path } of asked) expect(receipt.parse(JSON.parse(readFileSync(path, 'utf8'))).id).toBe(id)
}

test('a day of 80 groups with 10 concierge sessions at a time: 110 occurrences, each ran once and was said once', async () => {
  const live = await openLive({ agents: { enabled: 'no', atOnce, sandbox: 'process' } })
  onTestFinished(() => live.close())
  const start = Date.now()
  const planned = plan(start)
  for (const { folder } of planned) {
    const outcome = await live.host.addGroup({
      folder,
      jid: `${folder}@chat`,
      name: folder,
      main: false,
      dialect: 'hatchway',
    })
    expect(outcome.ok).toBe(true)
  }
  await live.start()
  await schedule(live, planned)

  const { config, layout } = live
  const { store } = live.host
  const owners = createOwners(config, store)
  const time = createDayClock(Date.now())
  const sandbox = createProcessSandbox()
  const positions = createPositions(store)
  const launch = createLaunch({
    config,
    layout,
    installation: randomUUID(),
    owners,
    store: store.agents,
    environment: {},
    log: quiet,
    now: () => new Date(time.clock.now()),
  })
  let busy = 0
  let busiest = 0
  const launched: string[] = []
  const agents = createRunQueue({
    config,
    store: store.agents,
    group: store.group,
    async launch(run, group) {
      launched.push(run.task?.occurrence_id ?? `${run.kind} of ${group.folder}`)
      busiest = Math.max(busiest, ++busy)
      const process = await launch(run, group, sandbox)
      process.exited.finally(() => busy--)
      return process
    },
    inputBox: group =>
      createInputBox({
        directory: join(layout.ipc, group.folder),
        dialect: group.dialect,
        staging: layout.staging,
        owner: owners(group.folder),
        timezone: 'UTC',
        now: () => new Date(time.clock.now()),
      }),
    message: (group, text) => ({
      id: positions.next(),
      group: group.folder,
      jid: group.jid,
      author: 'agent',
      kind: 'text',
      text,
      sender: null,
      speech: null,
      messageId: null,
      createdAt: time.clock.now(),
    }),
    said: () => {},
    typing: () => {},
    log: quiet,
    now: time.clock.now,
  })
  onTestFinished(() => agents.stop())
  const scheduler = createScheduler({
    store,
    config,
    log: quiet,
    clock: time.clock,
    retries: createRetries({ log: quiet, now: time.clock.now }),
    run: agents.runTask,
    mayRun: rightsOf(store),
  })
  onTestFinished(() => scheduler.stop())

  scheduler.start()
  const end = time.clock.now() + day
  const isCalm = () =>
    agents.running().length === 0 &&
    store.agents.occurrences({ status: 'claimed' }).length === 0 &&
    store.agents.occurrences({ status: 'running' }).length === 0
  // The clock stands still while agents work: to them a day is as long as it is to us.
  while (time.goOn(end)) if (!isCalm()) await until('the agents are done', isCalm, 120_000)

  const occurrences = store.agents.occurrences({ limit: 10_000 })
  expect(occurrences.filter(({ status }) => status !== 'done')).toEqual([])
  const timesOf = (ids: readonly string[]) => {
    const counts = new Map<string, number>()
    for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
    return counts
  }
  const expected = planned.map(({ folder, task, times }) => ({ folder, id: task.task_id, times }))
  expect(timesOf(occurrences.map(({ taskId }) => taskId))).toEqual(
    new Map(expected.map(({ id, times }) => [id, times])),
  )
  // One run for each of them, and no other.
  expect(launched.toSorted()).toEqual(occurrences.map(({ id }) => id).toSorted())
  const runs = store.agents.runs({ limit: 10_000 })
  expect(runs.filter(({ status }) => status !== 'done')).toEqual([])
  expect(runs.map(({ id }) => id).toSorted()).toEqual(occurrences.map(({ runId }) => runId).toSorted())
  expect(runs).toHaveLength(110)
  // And each was said, in the right chat, as often as it was due.
  const said = planned.flatMap(({ folder }) => store.messages({ group: folder }))
  expect(timesOf(said.map(({ jid, text }) => `${jid} ${text}`))).toEqual(
    new Map(expected.map(({ folder, times }) => [`${folder}@chat ⏰ Reminder: ${folder}`, times])),
  )
  expect(busiest).toBe(atOnce)
})
