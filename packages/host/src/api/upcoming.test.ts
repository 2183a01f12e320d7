import type { Task } from '@hatchway/protocol'
import { expect, test } from 'vitest'
import { upcomingRuns } from './upcoming.ts'

const from = Date.UTC(2030, 0, 1)
const day = 86_400_000
const taskOf = (id: string, more: Partial<Task>): Task => ({
  id,
  group: 'main',
  jid: 'local:main',
  created_by: 'main',
  prompt: `prompt of ${id}`,
  script: null,
  model: null,
  schedule_type: 'cron',
  schedule_value: '0 9 * * *',
  timezone: 'UTC',
  context_mode: 'group',
  status: 'active',
  next_run: new Date(from + day / 2).toISOString(),
  last_run: null,
  last_result: null,
  created_at: new Date(0).toISOString(),
  ...more,
})

test('coming runs are those the scheduler will make, soonest first', async () => {
  const daily = taskOf('daily', { next_run: '2030-01-01T09:00:00.000Z' })
  const once = taskOf('once', {
    schedule_type: 'once',
    schedule_value: '2030-01-02T08:00:00Z',
    next_run: '2030-01-02T08:00:00.000Z',
  })
  const overdue = taskOf('overdue', {
    schedule_type: 'interval',
    schedule_value: String(2 * day),
    next_run: '2029-12-31T00:00:00.000Z',
  })
  const paused = taskOf('paused', { status: 'paused' })
  const runs = await upcomingRuns([daily, once, overdue, paused], { from, until: from + 3 * day })
  expect(runs.map(({ task_id, at }) => `${new Date(at).toISOString().slice(0, 13)} ${task_id}`)).toEqual([
    '2030-01-01T00 overdue',
    '2030-01-01T09 daily',
    '2030-01-02T08 once',
    '2030-01-02T09 daily',
    '2030-01-03T00 overdue',
    '2030-01-03T09 daily',
  ])
})

test('a task that runs every second does not hide the others, and a thousand is enough', async () => {
  const busy = Array.from({ length: 20 }, (_, i) =>
    taskOf(`busy ${i}`, {
      schedule_type: 'interval',
      schedule_value: '1000',
      next_run: new Date(from).toISOString(),
    }),
  )
  const rare = taskOf('rare', { next_run: '2030-01-01T09:00:00.000Z' })
  const runs = await upcomingRuns([...busy, rare], { from, until: from + 31 * day })
  expect(runs.length).toBeLessThanOrEqual(1000)
  expect(runs.filter(({ task_id }) => task_id === 'rare')).toHaveLength(31)
  expect(await upcomingRuns(busy.slice(0, 1), { from, until: from + 31 * day })).toHaveLength(1000)
  // Whose later runs are left out is said, at the last one that is listed.
  expect(runs.filter(({ more }) => more).map(({ task_id }) => task_id)).toEqual(busy.map(({ id }) => id))
  const last = busy.map(({ id }) => runs.findLast(({ task_id }) => task_id === id))
  expect(last.every(run => run?.more)).toBe(true)
})

test('where a thousand do not hold what each task is due, nothing is left out in silence', async () => {
  const daily = Array.from({ length: 40 }, (_, i) => taskOf(`daily ${i}`, {}))
  const runs = await upcomingRuns(daily, { from, until: from + 31 * day })
  expect(runs).toHaveLength(1000)
  expect(runs.filter(({ more }) => more)).toHaveLength(40)
  const busy = daily.map(task => ({
    ...task,
    id: `busy ${task.id}`,
    schedule_type: 'interval' as const,
    schedule_value: '1000',
  }))
  const late = taskOf('late', { next_run: '2030-01-20T09:00:00.000Z' })
  const among = await upcomingRuns([...busy, late], { from, until: from + 31 * day })
  expect(among.at(-1)).toMatchObject({ task_id: 'late', at: Date.UTC(2030, 0, 20, 9), more: true })
  const whole = await upcomingRuns(daily.slice(0, 2), { from, until: from + 31 * day })
  expect(whole.some(({ more }) => more)).toBe(false)
})
