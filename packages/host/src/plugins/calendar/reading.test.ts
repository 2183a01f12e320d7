import { expect, test } from 'vitest'
import { createReader, type ReadingJob } from './reading.ts'
import { object, vevent } from './testing/objects.ts'
import { rangeOf } from './times.ts'

const zone = 'Europe/Berlin'
const good = object(vevent('DTSTART:20260701T100000Z', 'SUMMARY:Lunch'))
/** Each line sends the reader through two thousand years, for nothing. */
const endless = object(
  vevent(
    'DTSTART:00010101T000000Z',
    ...Array<string>(3000).fill('RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=MO;BYMONTHDAY=31'),
  ),
)
const job = (...texts: string[]): ReadingJob => ({
  texts,
  task: { kind: 'expand', most: 10 },
  range: rangeOf('2026-07-01', undefined, zone, 0),
  ...{ zone, steps: 10_000_000 },
})
const never = new AbortController().signal

test('an invitation that keeps the reader busy for ever is given up, and all others are read', async () => {
  const reader = createReader({ patienceMs: 2000 })
  const results = await reader.read(job(good, endless, good, 'no calendar', endless, good), 'main', never)
  expect(results.map(({ kind }) => kind)).toEqual([
    ...['expanded', 'unreadable', 'expanded', 'unreadable', 'unreadable', 'expanded'],
  ])
  expect(results[0]).toMatchObject({ more: false, instances: [{ title: 'Lunch' }] })
  expect(results[1]).toMatchObject({ reason: 'it takes too much time or memory to read' })
  expect(JSON.stringify(results[3])).not.toContain('no calendar')
})

test('whoever fills a calendar with such invitations does not keep it busy with each of them', async () => {
  const reader = createReader({ patienceMs: 300, mostStalls: 2 })
  const results = await reader.read(job(...Array<string>(100).fill(endless)), 'main', never)
  expect(results).toHaveLength(100)
  expect(results.every(({ kind }) => kind === 'unreadable')).toBe(true)
})

test('a reader is called off at once, at work or in the queue', async () => {
  const reader = createReader({ threads: 1 })
  const [first, second] = [new AbortController(), new AbortController()]
  const working = reader.read(job(endless), 'main', first.signal)
  const waiting = reader.read(job(good), 'main', second.signal)
  const third = reader.read(job(good), 'main', never)
  second.abort(new Error('taken back'))
  await expect(waiting).rejects.toThrow('taken back')
  first.abort(new Error('too late'))
  await expect(working).rejects.toThrow('too late')
  expect(await third).toMatchObject([{ kind: 'expanded' }])
  await expect(reader.read(job(good), 'main', first.signal)).rejects.toThrow('too late')
})

test('one group’s calendar keeps no other group waiting', async () => {
  const reader = createReader({ threads: 2 })
  const busy = new AbortController()
  const first = [1, 2, 3].map(() => reader.read(job(endless), 'bad', busy.signal))
  expect(await reader.read(job(good), 'main', never)).toMatchObject([{ kind: 'expanded' }])
  busy.abort(new Error('enough'))
  for (const result of await Promise.allSettled(first)) expect(result.status).toBe('rejected')
})

test('of very many events the first ones come back, and no more of the rest than must be', async () => {
  const daily = object(vevent('DTSTART:20260701T100000Z', 'RRULE:FREQ=DAILY', 'SUMMARY:daily'))
  const range = rangeOf('2026-07-01', '2027-06-30', zone, 0)
  const texts = [...Array<string>(300).fill(daily), good]
  const results = await createReader().read({ ...job(...texts), range }, 'main', never)
  const counts = results.map(result => (result.kind === 'expanded' ? result.instances.length : -1))
  expect(counts[0]).toBeLessThanOrEqual(11)
  expect(counts.at(-1)).toBe(1)
  expect(counts.reduce((one, other) => one + other)).toBeLessThan(700)
})

test('memory that is asked for without end ends the thread, not the host', async () => {
  const reader = createReader({ memoryMb: 48 })
  const many = Array<string>(200_000).fill('RDATE:20260701T120000Z').join('\r\n')
  const heavy = object(vevent('DTSTART:20260701T100000Z', many))
  const results = await reader.read(job(heavy, good), 'main', never)
  expect(results[0]).toMatchObject({ kind: 'unreadable' })
  expect(results[1]).toMatchObject({ kind: 'expanded' })
})
