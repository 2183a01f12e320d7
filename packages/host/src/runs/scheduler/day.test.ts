import { expect, test } from 'vitest'
import { day, hour, minute, openBench } from './testing.ts'

const groups = 200
const atATime = 10

test('a day of 200 groups with 10 at a time: every occurrence ran once', { timeout: 120_000 }, async () => {
  let busy = 0
  let busiest = 0
  const line: (() => void)[] = []
  const place = async () => {
    if (busy >= atATime) await new Promise<void>(resolve => line.push(resolve))
    else busy++
    busiest = Math.max(busiest, busy)
  }
  const leave = () => {
    const next = line.shift()
    if (next) next()
    else busy--
  }
  using testbed = openBench({
    start: '2026-01-15T00:00:30Z',
    async run({ occurrence }, begin) {
      await place()
      try {
        if (!begin(`run of ${occurrence.id}`).ok) throw new Error('not begun')
        // Between one and ten seconds, and always the same for the same occurrence.
        const seconds = 1 + ((occurrence.dueAt / 1000 + occurrence.taskId.length * 3) % 10)
        await new Promise<void>(resolve => void testbed.time.clock.setTimer(resolve, seconds * 1000))
        return { status: 'done', result: 'ok', error: null }
      } finally {
        leave()
      }
    },
  })
  testbed.scheduler.start()
  const started = testbed.time.clock.now()
  const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Pacific/Auckland']
  const expected = new Map<string, number>()
  for (let i = 0; i < groups; i++) {
    const folder = `g${i}`
    await testbed.addGroup(folder)
    const interval = (2 + (i % 5)) * hour
    const tasks = [
      { task_id: `${folder}-hourly`, schedule_type: 'cron', schedule_value: `${i % 60} * * * *`, times: 24 },
      { task_id: `${folder}-daily`, schedule_type: 'cron', schedule_value: '0 9 * * *', times: 1 },
      {
        task_id: `${folder}-every`,
        schedule_type: 'interval',
        schedule_value: String(interval),
        times: Math.floor(day / interval),
      },
      {
        task_id: `${folder}-once`,
        schedule_type: 'once',
        schedule_value: new Date(started + (i + 1) * 7 * minute).toISOString(),
        times: 1,
      },
    ]
    for (const { times, ...task } of tasks) {
      const timezone = zones[i % zones.length]
      const outcome = await testbed.ask(folder, 'schedule_task', {
        prompt: 'p',
        context_mode: 'isolated',
        timezone,
        ...task,
      })
      expect(outcome.ok).toBe(true)
      expected.set(task.task_id, (i + 1) * 7 * minute > day && task.schedule_type === 'once' ? 0 : times)
    }
  }
  await testbed.time.pass(day)
  // Those of the last minutes are still waiting in line.
  for (const { id, group } of testbed.store.tasks({ open: true })) {
    if (testbed.agents.task(id)?.status === 'active') await testbed.ask(group, 'pause_task', { task_id: id })
  }
  await testbed.time.pass(hour)

  const occurrences = testbed.agents.occurrences({})
  const begun = testbed.begun.map(({ occurrence }) => occurrence.id)
  expect(new Set(begun).size).toBe(begun.length)
  const counts = new Map([...expected.keys()].map(id => [id, 0]))
  for (const { taskId, status, error } of occurrences) {
    if (error !== 'The task was paused before it ran.') expect(status, `${taskId}: ${error}`).toBe('done')
    counts.set(taskId, (counts.get(taskId) ?? 0) + 1)
  }
  expect(counts).toEqual(expected)
  expect(busiest).toBe(atATime)
  expect(begun.length).toBeGreaterThan(groups * 30)
})
