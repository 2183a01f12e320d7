import { expect, test } from 'vitest'
import { dayMs, dayText } from './days.ts'
import { expand } from './expand.ts'
import { Unreadable } from './recurrence.ts'
import { object, ownZone, vevent } from './testing/objects.ts'
import { rangeOf, timeText } from './times.ts'
import { rememberClocks } from './zones.ts'

const zone = 'Europe/Berlin'

/** What takes place between the days, as `begin/end title`, in order. */
function between(start: string, end: string, text: string, limits: { most?: number; steps?: number } = {}) {
  const { instances, more } = expand(text, {
    range: rangeOf(start, end, zone, 0),
    zone,
    ...{ most: 500, steps: 200_000, ...limits },
    describedClock: rememberClocks(),
  })
  const told = instances
    .sort((one, other) => one.start - other.start)
    .map(({ start, end, days, title }) =>
      [
        days
          ? `${dayText(days.first)}/${dayText(days.end - dayMs)}`
          : `${timeText(start, zone)}/${timeText(end, zone)}`,
        title,
      ]
        .join(' ')
        .trim(),
    )
  return more ? [...told, 'more'] : told
}

const starts = (...parameters: Parameters<typeof between>) =>
  between(...parameters).map(told => told.split('/')[0])

test('a weekly event keeps its hour through both changes of the clock', () => {
  const lines = ['DTEND;TZID=Europe/Berlin:20260104T100000', 'RRULE:FREQ=WEEKLY', 'SUMMARY:Run']
  const text = object(vevent('DTSTART;TZID=Europe/Berlin:20260104T090000', ...lines))
  expect(between('2026-03-22', '2026-04-05', text)).toEqual([
    '2026-03-22T09:00:00+01:00/2026-03-22T10:00:00+01:00 Run',
    '2026-03-29T09:00:00+02:00/2026-03-29T10:00:00+02:00 Run',
    '2026-04-05T09:00:00+02:00/2026-04-05T10:00:00+02:00 Run',
  ])
  expect(starts('2026-10-18', '2026-10-25', text)).toEqual([
    '2026-10-18T09:00:00+02:00',
    '2026-10-25T09:00:00+01:00',
  ])
})

test('the same event of another zone changes its hour here when only one of the two clocks has changed', () => {
  const text = object(
    vevent('DTSTART;TZID=America/New_York:20260301T090000', 'DURATION:PT30M', 'RRULE:FREQ=WEEKLY'),
  )
  expect(starts('2026-03-01', '2026-03-29', text)).toEqual([
    '2026-03-01T15:00:00+01:00',
    '2026-03-08T14:00:00+01:00',
    '2026-03-15T14:00:00+01:00',
    '2026-03-22T14:00:00+01:00',
    '2026-03-29T15:00:00+02:00',
  ])
})

test('zones: described in the file, known by a longer name, UTC, none, and unknown', () => {
  const summer = (start: string, ...zones: string[]) =>
    starts('2026-07-01', '2026-07-01', object(...zones, vevent(start)))[0]
  expect(summer('DTSTART;TZID=W. Europe:20260701T090000', ownZone('W. Europe'))).toBe(
    '2026-07-01T09:00:00+02:00',
  )
  expect(summer('DTSTART;TZID=/mozilla.org/20050126_1/America/New_York:20260701T030000')).toBe(
    '2026-07-01T09:00:00+02:00',
  )
  expect(summer('DTSTART:20260701T070000Z')).toBe('2026-07-01T09:00:00+02:00')
  expect(summer('DTSTART:20260701T090000')).toBe('2026-07-01T09:00:00+02:00')
  expect(summer('DTSTART;TZID=Nowhere:20260701T090000')).toBe('2026-07-01T09:00:00+02:00')
  const { instances } = expand(object(vevent('DTSTART;TZID=Nowhere:20260701T090000')), {
    ...{ range: rangeOf('2026-07-01', undefined, zone, 0), zone, most: 1, steps: 1 },
    describedClock: rememberClocks(),
  })
  expect(instances[0]?.unknownZone).toBe('Nowhere')
})

test('a place is what the world knows of it, whatever the file says; a word is what the file says', () => {
  const lie = (name: string) => ownZone(name).replaceAll('+0200', '+0900').replaceAll('+0100', '+0900')
  const at = (name: string) =>
    starts('2026-07-01', '2026-07-01', object(lie(name), vevent(`DTSTART;TZID=${name}:20260701T120000`)))
  expect(at('Europe/Berlin')).toEqual(['2026-07-01T12:00:00+02:00'])
  expect(at('EST')).toEqual(['2026-07-01T05:00:00+02:00'])
})

test('a described clock: before its first change, in the hour that comes twice, in the one that does not come', () => {
  const text = (start: string) =>
    object(ownZone('Own').replaceAll('1601', '2000'), vevent(`DTSTART;TZID=Own:${start}`))
  const at = (start: string) => {
    const day = `${start.slice(0, 4)}-${start.slice(4, 6)}-${start.slice(6, 8)}`
    return starts(day, day, text(start))[0]
  }
  expect(at('19990701T120000')).toBe('1999-07-01T13:00:00+02:00')
  expect(at('20261025T023000')).toBe('2026-10-25T02:30:00+02:00')
  expect(at('20260329T023000')).toBe('2026-03-29T03:30:00+02:00')
})

test('whole days: one, several with the end left out of them, by duration, and reaching into the range', () => {
  const days = (start: string, ...lines: string[]) => between(start, start, object(vevent(...lines)))
  expect(days('2026-05-01', 'DTSTART;VALUE=DATE:20260501')).toEqual(['2026-05-01/2026-05-01'])
  expect(days('2026-05-02', 'DTSTART;VALUE=DATE:20260501', 'DTEND;VALUE=DATE:20260504')).toEqual([
    '2026-05-01/2026-05-03',
  ])
  expect(days('2026-05-04', 'DTSTART;VALUE=DATE:20260501', 'DTEND;VALUE=DATE:20260504')).toEqual([])
  expect(days('2026-05-07', 'DTSTART;VALUE=DATE:20260501', 'DURATION:P1W')).toEqual(['2026-05-01/2026-05-07'])
  expect(days('2026-04-30', 'DTSTART;VALUE=DATE:20260501')).toEqual([])
  expect(
    between(
      '2026-03-28',
      '2026-03-30',
      object(vevent('DTSTART;VALUE=DATE:20260101', 'RRULE:FREQ=DAILY;UNTIL=20260329')),
    ),
  ).toEqual(['2026-03-28/2026-03-28', '2026-03-29/2026-03-29'])
})

test('an event that began before the range and reaches into it is told, one that ends at its beginning is not', () => {
  const night = (end: string) => object(vevent('DTSTART:20260501T200000Z', `DTEND:${end}`))
  expect(starts('2026-05-02', '2026-05-02', night('20260502T040000Z'))).toEqual(['2026-05-01T22:00:00+02:00'])
  expect(starts('2026-05-02', '2026-05-02', night('20260501T220000Z'))).toEqual([])
  expect(starts('2026-05-02', '2026-05-02', object(vevent('DTSTART:20260501T220000Z')))).toEqual([
    '2026-05-02T00:00:00+02:00',
  ])
  const week = object(
    vevent('DTSTART:20200101T200000Z', 'DTEND:20200108T200000Z', 'RRULE:FREQ=WEEKLY;INTERVAL=2'),
  )
  expect(starts('2026-05-02', '2026-05-02', week)).toEqual(['2026-04-29T22:00:00+02:00'])
})

test('an end means the same length each time, a duration in days the same hour', () => {
  const start = 'DTSTART;TZID=Europe/Berlin:20260328T120000'
  expect(
    between('2026-03-28', '2026-03-28', object(vevent(start, 'DTEND;TZID=Europe/Berlin:20260329T120000'))),
  ).toEqual(['2026-03-28T12:00:00+01:00/2026-03-29T12:00:00+02:00'])
  expect(between('2026-03-28', '2026-03-28', object(vevent(start, 'DURATION:P1D')))).toEqual([
    '2026-03-28T12:00:00+01:00/2026-03-29T12:00:00+02:00',
  ])
  expect(between('2026-03-28', '2026-03-28', object(vevent(start, 'DURATION:PT24H')))).toEqual([
    '2026-03-28T12:00:00+01:00/2026-03-29T13:00:00+02:00',
  ])
})

test('extra times, times called off, a time moved, one cancelled, one renamed', () => {
  const text = object(
    vevent(
      'DTSTART;TZID=Europe/Berlin:20260601T090000',
      'DURATION:PT1H',
      'RRULE:FREQ=DAILY;COUNT=7',
      'RDATE;TZID=Europe/Berlin:20260605T150000',
      'RDATE;VALUE=PERIOD:20260606T120000Z/PT3H',
      'EXDATE;TZID=Europe/Berlin:20260602T090000',
      'EXDATE:20260603T070000Z',
      'EXDATE;VALUE=DATE:20260607',
      'SUMMARY:Course',
    ),
    vevent('RECURRENCE-ID:20260604T070000Z', 'DTSTART:20260620T070000Z', 'DURATION:PT2H', 'SUMMARY:Moved'),
    vevent(
      'RECURRENCE-ID;TZID=Europe/Berlin:20260605T090000',
      'DTSTART:20260605T070000Z',
      'STATUS:CANCELLED',
    ),
  )
  expect(between('2026-06-01', '2026-06-30', text)).toEqual([
    '2026-06-01T09:00:00+02:00/2026-06-01T10:00:00+02:00 Course',
    '2026-06-05T15:00:00+02:00/2026-06-05T16:00:00+02:00 Course',
    '2026-06-06T09:00:00+02:00/2026-06-06T10:00:00+02:00 Course',
    '2026-06-06T14:00:00+02:00/2026-06-06T17:00:00+02:00 Course',
    '2026-06-20T09:00:00+02:00/2026-06-20T11:00:00+02:00 Moved',
  ])
  expect(between('2026-06-20', '2026-06-20', text)).toHaveLength(1)
})

test('a change to this and all later times moves them all', () => {
  const text = object(
    vevent(
      'DTSTART;TZID=Europe/Berlin:20260601T090000',
      'DURATION:PT1H',
      'RRULE:FREQ=DAILY;COUNT=4',
      'SUMMARY:a',
    ),
    vevent(
      'RECURRENCE-ID;RANGE=THISANDFUTURE:20260603T070000Z',
      'DTSTART;TZID=Europe/Berlin:20260603T110000',
      'DURATION:PT30M',
      'SUMMARY:b',
    ),
  )
  expect(between('2026-06-01', '2026-06-30', text)).toEqual([
    '2026-06-01T09:00:00+02:00/2026-06-01T10:00:00+02:00 a',
    '2026-06-02T09:00:00+02:00/2026-06-02T10:00:00+02:00 a',
    '2026-06-03T11:00:00+02:00/2026-06-03T11:30:00+02:00 b',
    '2026-06-04T11:00:00+02:00/2026-06-04T11:30:00+02:00 b',
  ])
})

test('the end of a rule is read on the clock of the event, or with the whole day', () => {
  const until = (end: string) =>
    starts(
      '2026-06-01',
      '2026-06-05',
      object(vevent('DTSTART;TZID=America/New_York:20260601T200000', `RRULE:FREQ=DAILY;UNTIL=${end}`)),
    ).length
  expect(until('20260603T000000Z')).toBe(2)
  expect(until('20260602T235959Z')).toBe(1)
  expect(until('20260602')).toBe(2)
})

test('days that a month or a year does not have are left out, not moved', () => {
  const dates = (start: string, rule: string, from: string, to: string) =>
    between(from, to, object(vevent(`DTSTART;VALUE=DATE:${start}`, `RRULE:${rule}`))).map(told =>
      told.slice(0, 10),
    )
  expect(dates('20260131', 'FREQ=MONTHLY', '2026-01-01', '2026-06-30')).toEqual([
    '2026-01-31',
    '2026-03-31',
    '2026-05-31',
  ])
  expect(dates('20240229', 'FREQ=YEARLY', '2025-01-01', '2025-12-31')).toEqual([])
  expect(dates('20240229', 'FREQ=YEARLY', '2028-01-01', '2028-12-31')).toEqual(['2028-02-29'])
  expect(
    dates('20260130', 'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1', '2026-01-01', '2026-03-31'),
  ).toEqual(['2026-01-30', '2026-02-27', '2026-03-31'])
  expect(dates('20261126', 'FREQ=YEARLY;BYMONTH=11;BYDAY=4TH', '2027-01-01', '2027-12-31')).toEqual([
    '2027-11-25',
  ])
})

test('a rule that never ends, or nearly so, costs no more than what is told', () => {
  const seconds = (rule: string, limits = {}) =>
    starts('2026-07-01', '2026-07-07', object(vevent('DTSTART:20000101T000000Z', `RRULE:${rule}`)), limits)
  expect(seconds('FREQ=SECONDLY', { most: 3 })).toEqual([
    '2026-07-01T00:00:00+02:00',
    '2026-07-01T00:00:01+02:00',
    '2026-07-01T00:00:02+02:00',
    'more',
  ])
  expect(seconds('FREQ=SECONDLY;COUNT=1000000000', { most: 1 })).toEqual([
    '2026-07-01T00:00:00+02:00',
    'more',
  ])
  expect(seconds('FREQ=SECONDLY;COUNT=1000')).toEqual([])
  expect(seconds('FREQ=DAILY;INTERVAL=1000000000')).toEqual([])
  expect(seconds('FREQ=DAILY;INTERVAL=7;BYDAY=TU')).toEqual([])
  expect(seconds('FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30')).toEqual([])
  expect(seconds('FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30')).toEqual([])
  expect(() => seconds('FREQ=SECONDLY;BYMONTH=2')).toThrow('it repeats too often to be counted')
  expect(() => seconds('FREQ=SECONDLY;COUNT=1000000000;BYDAY=MO')).toThrow(Unreadable)
})

test('what cannot be counted rightly is said to be so', () => {
  const rule = (text: string) => () =>
    starts('2026-07-01', '2026-07-07', object(vevent('DTSTART:20260101T000000Z', text)))
  expect(rule('RRULE:FREQ=YEARLY;BYWEEKNO=20')).toThrow(Unreadable)
  expect(rule('RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYSETPOS=-1')).toThrow(Unreadable)
  expect(rule('RRULE:FREQ=YEARLY;BYDAY=20MO')).toThrow(Unreadable)
  expect(rule('EXRULE:FREQ=DAILY')).toThrow(Unreadable)
  expect(rule('DURATION:P99999999999D')).toThrow(Unreadable)
  expect(() => starts('2026-07-01', '2026-07-07', object(vevent('SUMMARY:no time')))).toThrow(Unreadable)
})
