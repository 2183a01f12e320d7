import { afterAll, expect, test, vi } from 'vitest'
import { cutOff, dayKey, monthKey, monthOf, monthsOn, weeksOf } from './calendar.ts'
import { scheduleInWords } from './schedule.ts'

// Days have 23 and 25 hours there.
vi.stubEnv('TZ', 'Europe/Berlin')
afterAll(() => {
  vi.unstubAllEnvs()
})

const run = (at: string, task_id = 't') => ({ task_id, group: 'main', prompt: 'x', at })

test('a month hangs on the wall in whole weeks, each day once, also where a day has 23 or 25 hours', () => {
  for (const month of [
    new Date(2026, 2, 1),
    new Date(2026, 9, 1),
    new Date(2027, 1, 1),
    new Date(2026, 1, 1),
  ]) {
    const weeks = weeksOf(month, [], month)
    const days = weeks.flat()
    expect(weeks.every(week => week.length === 7)).toBe(true)
    expect(days[0]?.date.getDay()).toBe(1)
    expect(new Set(days.map(({ key }) => key)).size).toBe(days.length)
    const last = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate()
    expect(days.filter(({ isOfMonth }) => isOfMonth)).toHaveLength(last)
    expect(weeks.every(week => week.some(({ isOfMonth }) => isOfMonth))).toBe(true)
  }
})

test('runs stand on the viewer’s day, one line for each task', () => {
  const runs = [
    run('2026-03-28T23:30:00.000Z'),
    run('2026-03-29T10:00:00.000Z'),
    run('2026-03-29T09:00:00.000Z', 'u'),
  ]
  const days = weeksOf(new Date(2026, 2, 1), runs, new Date(2026, 2, 29)).flat()
  const [day, ...others] = days.filter(({ due }) => due.length > 0)
  expect(others).toEqual([])
  expect(day).toMatchObject({
    key: '2026-03-29',
    isToday: true,
    due: [
      { task_id: 't', times: 2, at: '2026-03-28T23:30:00.000Z' },
      { task_id: 'u', times: 1 },
    ],
  })
})

test('a task whose runs are not all known is said to go on, from the last day that is known', () => {
  const last = { ...run('2026-03-03T09:00:00.000Z'), more: true as const }
  const runs = [last, run('2026-03-02T09:00:00.000Z'), run('2026-03-03T08:00:00.000Z', 'u')]
  const days = weeksOf(new Date(2026, 2, 1), runs, new Date(2026, 2, 1)).flat()
  const going = days.flatMap(({ key, due }) =>
    due.filter(({ goesOn }) => goesOn).map(due => [key, due.task_id]),
  )
  expect(going).toEqual([['2026-03-03', 't']])
  expect(cutOff(runs)).toEqual([last])
})

test('months are named as they are read back', () => {
  const now = new Date(2026, 11, 31, 23)
  expect(monthKey(monthsOn(monthOf(undefined, now), 1))).toBe('2027-01')
  expect(dayKey(monthOf('2027-02', now))).toBe('2027-02-01')
  expect(monthKey(monthOf('nonsense', now))).toBe('2026-12')
})

test('schedules are put into words where those are clear', () => {
  const words = (schedule_type: 'cron' | 'interval' | 'once', schedule_value: string) =>
    scheduleInWords({ schedule_type, schedule_value, timezone: 'UTC' })
  expect(words('cron', '0 9 * * 1-5')).toBe('every weekday at 09:00 (UTC)')
  expect(words('cron', '*/30 * * * *')).toBe('every 30 min (UTC)')
  expect(words('cron', '5 7 * * 0')).toBe('every Sunday at 07:05 (UTC)')
  expect(words('cron', '0 9 1 * *')).toBe('0 9 1 * * (UTC)')
  expect(words('interval', '3600000')).toBe('every 1 h')
})
