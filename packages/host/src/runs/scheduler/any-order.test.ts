import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hour, minute, openBench } from './testing.ts'

/**
 * Whatever happens in whatever order: no occurrence begins twice, no task runs beside itself, and whatever was due of
 * an active task is claimed, with a reason where it did not run.
 */
const kinds = fc.oneof(
  fc.record({ type: fc.constant('interval' as const), every: fc.integer({ min: 7, max: 2400 }) }),
  fc.record({ type: fc.constant('cron' as const), every: fc.constantFrom(1, 5, 15, 30) }),
  fc.record({ type: fc.constant('once' as const), every: fc.integer({ min: 1, max: 5000 }) }),
)
const task = fc.integer({ min: 0, max: 3 })
const steps = fc.oneof(
  { weight: 3, arbitrary: fc.record({ step: fc.constant('schedule' as const), kind: kinds }) },
  {
    weight: 6,
    arbitrary: fc.record({
      step: fc.constant('pass' as const),
      ms: fc.integer({ min: 0, max: 40 * 60 }).map(s => s * 1000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ step: fc.constantFrom('pause' as const, 'resume' as const), task }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('cancel' as const), task }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('now' as const), task }) },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('jump' as const),
      ms: fc.integer({ min: -2 * 3600, max: 5 * 3600 }).map(s => s * 1000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('restart' as const),
      ms: fc.integer({ min: 0, max: 3 * 3600 }).map(s => s * 1000),
      orderly: fc.boolean(),
    }),
  },
)
type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never

async function play(sequence: readonly Step[], missed: 'once' | 'skip', durations: readonly number[]) {
  const live = new Map<string, number>()
  let turn = 0
  let lifetime = 0
  const next = () => (durations[turn++ % durations.length] ?? 0) * 1000
  using testbed = openBench({
    missed,
    async run({ occurrence, task }, begin) {
      const born = lifetime
      const wait = (ms: number) => new Promise<void>(resolve => void testbed.time.clock.setTimer(resolve, ms))
      await wait(next())
      if (!begin(`run-${turn}`).ok) return { status: 'failed', result: null, error: 'not begun' }
      expect(live.get(task.id), `${occurrence.id} runs beside another`).not.toBe(born)
      live.set(task.id, born)
      await wait(next())
      live.delete(task.id)
      return { status: 'done', result: 'ok', error: null }
    },
  })
  await testbed.addGroup('family')
  testbed.scheduler.start()
  const ids: string[] = []
  const now = () => testbed.time.clock.now()
  const active = () =>
    testbed.store
      .tasks({})
      .flatMap(one =>
        one.status === 'active' && one.next_run !== null ? [{ ...one, dueAt: Date.parse(one.next_run) }] : [],
      )
  const known = () => new Set(testbed.agents.occurrences({}).map(({ id }) => id))
  const expectClaimed = (id: string, dueAt: number) => {
    const occurrence = testbed.agents.occurrence(`${id}.${dueAt}`)
    expect(occurrence, `${id} at ${new Date(dueAt).toISOString()}`).toBeDefined()
  }
  /** nothing lies there due and unclaimed */
  const expectNothingDue = () => {
    for (const { id, dueAt } of active()) expect(dueAt, id).toBeGreaterThan(now())
  }

  for (const step of sequence) {
    const id = 'task' in step ? ids[step.task] : undefined
    const before = active()
    const from = now()
    switch (step.step) {
      case 'schedule': {
        if (ids.length === 4) break
        const { type, every } = step.kind
        const value = {
          interval: String(every * 1000),
          cron: `*/${every} * * * *`,
          once: new Date(now() + every * 1000).toISOString(),
        }
        const task_id = `t${ids.length}`
        const outcome = await testbed.ask('family', 'schedule_task', {
          task_id,
          prompt: 'p',
          schedule_type: type,
          schedule_value: value[type],
          context_mode: 'isolated',
        })
        expect(outcome.ok).toBe(true)
        ids.push(task_id)
        break
      }
      case 'pause':
      case 'resume':
      case 'cancel':
        if (id !== undefined) await testbed.ask('family', `${step.step}_task`, { task_id: id })
        break
      case 'now':
        if (id !== undefined) testbed.scheduler.runNow(id)
        break
      case 'pass':
        await testbed.time.pass(step.ms)
        for (const { id, dueAt, schedule_type, schedule_value } of before) {
          if (dueAt > now()) continue
          expectClaimed(id, dueAt)
          if (schedule_type === 'once') continue
          // Every time in between, one by one: no host was down and no clock jumped.
          const every =
            schedule_type === 'interval'
              ? Number(schedule_value)
              : Number(schedule_value.slice(2, 4)) * minute
          expect(dueAt, id).toBeGreaterThan(from)
          for (let at = dueAt; at <= now(); at += every) expectClaimed(id, at)
        }
        expectNothingDue()
        break
      case 'jump':
        testbed.time.jump(step.ms)
        await testbed.time.pass(minute + 1000)
        if (step.ms >= 0) for (const { id, dueAt } of before) if (dueAt <= now()) expectClaimed(id, dueAt)
        for (const { id, dueAt, schedule_type, schedule_value } of active()) {
          if (schedule_type === 'interval')
            expect(dueAt, id).toBeLessThanOrEqual(now() + Number(schedule_value))
        }
        expectNothingDue()
        break
      case 'restart': {
        const claimed = known()
        if (step.orderly) void testbed.scheduler.stop()
        testbed.kill()
        lifetime++
        testbed.time.jump(step.ms)
        testbed.revive()
        await testbed.time.pass(1)
        for (const { id, dueAt } of before) if (dueAt <= now()) expectClaimed(id, dueAt)
        expectNothingDue()
        // However often it was due while the host was down: once.
        const caughtUp = testbed.agents.occurrences({}).filter(({ id }) => !claimed.has(id))
        expect(new Set(caughtUp.map(({ taskId }) => taskId)).size).toBe(caughtUp.length)
        break
      }
    }
    await testbed.time.pass(0)
  }

  for (const { id } of active()) await testbed.ask('family', 'pause_task', { task_id: id })
  await testbed.time.pass(4 * hour)
  const begun = testbed.begun.map(({ occurrence }) => occurrence.id)
  expect(new Set(begun).size, 'begun twice').toBe(begun.length)
  const ran = new Set(begun)
  const reasons = [
    'The run before was still going on.',
    'The task was paused before it ran.',
    'The task was cancelled before it ran.',
    ...(missed === 'skip' ? ['Its time passed while the host was not running.'] : []),
  ]
  for (const { id, status, error, dueAt, claimedAt } of testbed.agents.occurrences({})) {
    if (status === 'done') expect(ran.has(id), id).toBe(true)
    else if (status === 'failed') expect(error).toBe('The host stopped during the run.')
    else {
      expect(status, id).toBe('skipped')
      expect(ran.has(id), id).toBe(false)
      expect(reasons).toContain(error)
      if (error?.startsWith('Its time')) expect(claimedAt - dueAt).toBeGreaterThan(minute)
    }
  }
  return testbed.begun.length
}

test('no occurrence runs twice and none is forgotten, whatever happens', { timeout: 120_000 }, async () => {
  let total = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(steps, { minLength: 3, maxLength: 25 }),
      fc.constantFrom('once' as const, 'skip' as const),
      fc.array(fc.constantFrom(0, 0, 1, 20, 90, 600), { minLength: 2, maxLength: 8 }),
      async (sequence, missed, durations) => {
        total += await play(sequence, missed, durations)
      },
    ),
    { numRuns: Number(process.env.HATCHWAY_RUNS ?? 50) },
  )
  expect(total).toBeGreaterThan(0)
})
