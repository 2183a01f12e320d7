import { expect, test } from 'vitest'
import { removeInstance } from './remove-instance.ts'
import { object, vevent } from './testing/objects.ts'
import { rememberClocks } from './zones.ts'

const removed = (text: string, key: string) =>
  removeInstance(text, key, Date.UTC(2026, 0, 1), {
    range: { from: Date.parse(key), to: Date.parse(key) },
    ...{ zone: 'Europe/Berlin', steps: 1000, describedClock: rememberClocks() },
  })

test('of an invitation to one time of a series nothing is left, of one to two the other is', () => {
  const one = vevent('RECURRENCE-ID:20260704T100000Z', 'DTSTART:20260704T120000Z', 'SUMMARY:a')
  const two = vevent('RECURRENCE-ID:20260705T100000Z', 'DTSTART:20260705T120000Z', 'SUMMARY:b')
  const key = '2026-07-04T10:00:00.000Z'
  expect(removed(object(one), key)).toMatchObject({ instance: { title: 'a' }, text: undefined })
  const { text } = removed(object(one, two), key) ?? {}
  expect(text).toContain('SUMMARY:b')
  expect(text).not.toContain('SUMMARY:a')
})

test('a change to all later times outlives the time it was made for', () => {
  const text = object(
    vevent('DTSTART:20260701T100000Z', 'RRULE:FREQ=DAILY;COUNT=4', 'SEQUENCE:3', 'SUMMARY:a'),
    vevent('RECURRENCE-ID;RANGE=THISANDFUTURE:20260702T100000Z', 'DTSTART:20260702T120000Z', 'SUMMARY:b'),
  )
  const first = removed(text, '2026-07-02T10:00:00.000Z')
  expect(first?.instance).toMatchObject({ title: 'b', start: Date.UTC(2026, 6, 2, 12) })
  expect(first?.text).toContain('RANGE=THISANDFUTURE')
  expect(first?.text).toContain('SEQUENCE:4')
  expect(removed(first?.text ?? '', '2026-07-02T10:00:00.000Z')).toBeUndefined()
  expect(removed(first?.text ?? '', '2026-07-03T10:00:00.000Z')?.instance).toMatchObject({ title: 'b' })
})

test('times that the series does not have are not called off', () => {
  const text = object(
    vevent('DTSTART:20260701T100000Z', 'RRULE:FREQ=DAILY;COUNT=4', 'EXDATE:20260702T100000Z'),
  )
  for (const key of [
    '2026-07-02T10:00:00.000Z',
    '2026-07-03T11:00:00.000Z',
    '2026-07-05T10:00:00.000Z',
    '2026-07-03',
  ])
    expect(removed(text, key)).toBeUndefined()
  expect(removed(text, '2026-07-01T10:00:00.000Z')).toBeDefined()
})

test('a time without a zone is called off as it is written', () => {
  const text = object(vevent('DTSTART:20260701T100000', 'RRULE:FREQ=DAILY;COUNT=4'))
  expect(removed(text, '2026-07-02T08:00:00.000Z')?.text).toContain('EXDATE:20260702T100000\r\n')
})
