import { Cron } from 'croner'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { nextRun, type Schedule } from './schedule.ts'

type Type = Schedule['schedule_type']

const next = (type: Type, value: string, after: string, timezone = 'Europe/Berlin') => {
  const result = nextRun({ schedule_type: type, schedule_value: value, timezone }, new Date(after))
  return result.ok ? result.at.toISOString() : result.error.code
}

const reason = (type: Type, value: string, timezone = 'Europe/Berlin') => {
  const result = nextRun({ schedule_type: type, schedule_value: value, timezone }, new Date(noon))
  return result.ok ? `runs at ${result.at.toISOString()}` : `${result.error.code}: ${result.error.message}`
}

const series = (count: number, type: Type, value: string, after: string, timezone?: string): string[] => {
  const runs: string[] = []
  for (let from = after; runs.length < count; from = runs[runs.length - 1] ?? after) {
    runs.push(next(type, value, from, timezone))
  }
  return runs
}

const noon = '2026-01-15T12:00:00.000Z'

describe('cron', () => {
  test('five fields count minutes, in the zone of the task', () => {
    expect(next('cron', '0 9 * * *', noon)).toBe('2026-01-16T08:00:00.000Z')
    expect(next('cron', '0 9 * * *', noon, 'America/New_York')).toBe('2026-01-15T14:00:00.000Z')
    expect(next('cron', '0 9 * * *', noon, 'UTC')).toBe('2026-01-16T09:00:00.000Z')
    expect(next('cron', '*/5 * * * *', '2026-01-15T12:04:59.999Z')).toBe('2026-01-15T12:05:00.000Z')
    expect(next('cron', '*/5 * * * *', '2026-01-15T12:05:00.000Z')).toBe('2026-01-15T12:10:00.000Z')
  })

  test('six fields begin with seconds', () => {
    expect(next('cron', '*/10 * * * * *', noon)).toBe('2026-01-15T12:00:10.000Z')
    expect(next('cron', '30 0 9 * * MON', noon)).toBe('2026-01-19T08:00:30.000Z')
  })

  test('names, the last day, the nth and the last weekday are understood', () => {
    expect(next('cron', '0 0 * FEB-MAR MON-FRI', noon)).toBe('2026-02-01T23:00:00.000Z')
    expect(next('cron', '0 0 L * *', noon)).toBe('2026-01-30T23:00:00.000Z')
    expect(next('cron', '0 0 LW * *', noon)).toBe('2026-01-29T23:00:00.000Z')
    expect(next('cron', '0 0 18W * *', noon)).toBe('2026-01-18T23:00:00.000Z')
    expect(next('cron', '0 0 * * FRI#2', noon)).toBe('2026-02-12T23:00:00.000Z')
    expect(next('cron', '0 0 * * FRI#L', noon)).toBe('2026-01-29T23:00:00.000Z')
    expect(next('cron', '0 0 ? * 7', noon)).toBe('2026-01-17T23:00:00.000Z')
  })

  test('a day of the month or a weekday is enough, unless the weekday says and', () => {
    expect(next('cron', '0 0 13 * FRI', noon)).toBe('2026-01-15T23:00:00.000Z')
    expect(next('cron', '0 0 13 * +FRI', noon)).toBe('2026-02-12T23:00:00.000Z')
  })

  test.each([
    ['@hourly', '2026-01-15T13:00:00.000Z'],
    ['@daily', '2026-01-15T23:00:00.000Z'],
    ['@midnight', '2026-01-15T23:00:00.000Z'],
    ['@Weekly', '2026-01-17T23:00:00.000Z'],
    ['@monthly', '2026-01-31T23:00:00.000Z'],
    ['@yearly', '2026-12-31T23:00:00.000Z'],
    ['@annually', '2026-12-31T23:00:00.000Z'],
  ])('%s has a name', (value, expected) => {
    expect(next('cron', value, noon)).toBe(expected)
  })

  test('29 February waits for a leap year, eight years where the century has none', () => {
    expect(next('cron', '0 12 29 2 *', noon)).toBe('2028-02-29T11:00:00.000Z')
    expect(next('cron', '0 12 29 2 *', '2096-03-01T00:00:00Z')).toBe('2104-02-29T11:00:00.000Z')
    expect(next('cron', '0 12 29 2 +MON', noon)).toBe('2044-02-29T11:00:00.000Z')
    expect(next('cron', '0 12 29 2 +MON', '2072-03-01T00:00:00Z')).toBe('2112-02-29T11:00:00.000Z')
  })

  test('zones are not always whole hours apart', () => {
    expect(next('cron', '30 9 * * *', noon, 'Asia/Kolkata')).toBe('2026-01-16T04:00:00.000Z')
    expect(next('cron', '0 0 * * *', noon, 'Asia/Kathmandu')).toBe('2026-01-15T18:15:00.000Z')
    expect(next('cron', '0 12 * * *', noon, 'Australia/Eucla')).toBe('2026-01-16T03:15:00.000Z')
  })

  test('zone names are taken in any case', () => {
    expect(next('cron', '30 9 * * *', noon, 'asia/KOLKATA')).toBe('2026-01-16T04:00:00.000Z')
  })

  describe('when the clock jumps forward', () => {
    test('a fixed time within the jump runs right after it, that day only', () => {
      expect(series(3, 'cron', '30 2 * * *', '2026-03-28T00:00:00Z')).toEqual([
        '2026-03-28T01:30:00.000Z',
        '2026-03-29T01:00:00.000Z',
        '2026-03-30T00:30:00.000Z',
      ])
      expect(series(2, 'cron', '30 2 * * *', '2026-03-07T12:00:00Z', 'America/New_York')).toEqual([
        '2026-03-08T07:00:00.000Z',
        '2026-03-09T06:30:00.000Z',
      ])
      expect(next('cron', '15 2 * * *', '2026-10-03T00:00:00Z', 'Australia/Lord_Howe')).toBe(
        '2026-10-03T15:30:00.000Z',
      )
    })

    test('what repeats within the day skips what the clock skips', () => {
      expect(series(2, 'cron', '*/30 2 * * *', '2026-03-28T01:30:00Z')).toEqual([
        '2026-03-30T00:00:00.000Z',
        '2026-03-30T00:30:00.000Z',
      ])
      expect(series(3, 'cron', '*/30 * * * *', '2026-03-29T00:00:00Z')).toEqual([
        '2026-03-29T00:30:00.000Z',
        '2026-03-29T01:00:00.000Z',
        '2026-03-29T01:30:00.000Z',
      ])
      expect(next('cron', '*/20 2-3 * * *', '2026-03-08T00:00:00Z', 'America/New_York')).toBe(
        '2026-03-08T07:00:00.000Z',
      )
      expect(next('cron', '* * 2 29 3 *', noon)).toBe('2027-03-29T00:00:00.000Z')
    })
  })

  describe('when the clock goes back', () => {
    test('a fixed time that comes twice runs the first time', () => {
      expect(series(3, 'cron', '30 2 * * *', '2026-10-24T12:00:00Z')).toEqual([
        '2026-10-25T00:30:00.000Z',
        '2026-10-26T01:30:00.000Z',
        '2026-10-27T01:30:00.000Z',
      ])
      expect(series(2, 'cron', '30 1 * * *', '2026-10-31T12:00:00Z', 'America/New_York')).toEqual([
        '2026-11-01T05:30:00.000Z',
        '2026-11-02T06:30:00.000Z',
      ])
    })

    test('what repeats within the day runs through the repeated hour', () => {
      expect(series(5, 'cron', '*/30 2 * * *', '2026-10-24T12:00:00Z')).toEqual([
        '2026-10-25T00:00:00.000Z',
        '2026-10-25T00:30:00.000Z',
        '2026-10-25T01:00:00.000Z',
        '2026-10-25T01:30:00.000Z',
        '2026-10-26T01:00:00.000Z',
      ])
      expect(series(3, 'cron', '0,30 1 * * *', '2026-11-01T05:00:00Z', 'America/New_York')).toEqual([
        '2026-11-01T05:30:00.000Z',
        '2026-11-01T06:00:00.000Z',
        '2026-11-01T06:30:00.000Z',
      ])
    })

    test('the second pass is found although the next match on the clock is one that the clock skips', () => {
      // Runs at 2 in both passes of the last Sunday of October, and never in March.
      expect(series(5, 'cron', '0,15 2 * 3,10 SUN#L', '2026-09-01T00:00:00Z')).toEqual([
        '2026-10-25T00:00:00.000Z',
        '2026-10-25T00:15:00.000Z',
        '2026-10-25T01:00:00.000Z',
        '2026-10-25T01:15:00.000Z',
        '2027-10-31T00:00:00.000Z',
      ])
    })
  })

  test.each([
    '0 0 30 2 *',
    '0 0 31 2,4,6,9,11 *',
    '0 0 1 1 +MON#5',
    '30,31 2 * 3 SUN#L',
    '* 2 * 3 SUN#L',
    '* * 2 * 3 SUN#L',
    '0-58 * 2 25-31 3 +SUN',
  ])('%s, which never comes, is refused, and soon', value => {
    // croner alone searches for up to a minute.
    expect(reason('cron', value)).toBe(
      'bad_schedule: The cron expression matches no time that a clock in its zone shows in the next 40 years.',
    )
  })

  test.each([
    '',
    ' ',
    'daily',
    '@reboot',
    '@every',
    '@daily @daily',
    '* * * *',
    '* * * * * * *',
    '2027-01-01T00:00:00',
    '2027-01-01T00:00:00Z',
    '2027-01-01 00:00:00',
    '60000',
    '0\u00a00\u00a01\u00a01\u00a0*',
    '0\n0\n1\n1\n*',
  ])('%j is not a cron expression, and the answer says what one is', value => {
    expect(reason('cron', value)).toContain('bad_schedule: A cron expression has five fields')
  })

  test.each([
    ['60 * * * *', 'minute takes 0-59'],
    ['-1 * * * *', 'minute takes 0-59'],
    ['5* * * * *', 'minute takes 0-59'],
    ['1e1 * * * *', 'minute takes 0-59'],
    ['*/0 * * * *', 'minute takes 0-59'],
    ['*/61 * * * *', 'minute takes 0-59'],
    ['5/5 * * * *', 'minute takes 0-59'],
    ['30-10 * * * *', 'minute takes 0-59'],
    ['1,,2 * * * *', 'minute takes 0-59'],
    ['60 0 * * * *', 'second takes 0-59'],
    ['0 24 * * *', 'hour takes 0-23'],
    ['0 0 0 * *', 'day of month takes 1-31'],
    ['0 0 32 * *', 'day of month takes 1-31'],
    ['0 0 1W5 * *', 'day of month takes 1-31'],
    ['0 0 * 13 *', 'month takes 1-12 or JAN-DEC'],
    ['0 0 * JANFEB *', 'month takes 1-12 or JAN-DEC'],
    ['0 0 * * 8', 'day of week takes 0-7 or SUN-SAT'],
    ['0 0 * * 1#6', 'day of week takes 0-7 or SUN-SAT'],
    ['0 0 * * 1#2#3', 'day of week takes 0-7 or SUN-SAT'],
    ['0 0 * * +', 'day of week takes 0-7 or SUN-SAT'],
    ['0 0 * * 1,+2', 'day of week takes 0-7 or SUN-SAT'],
    ['0 0 * * __proto__', 'day of week takes 0-7 or SUN-SAT'],
  ])('%s is refused with the field that is wrong', (value, expected) => {
    expect(reason('cron', value)).toContain(`bad_schedule: The cron expression's ${expected}`)
  })

  test('an endless expression is refused unread', () => {
    expect(reason('cron', `${'1,'.repeat(100_000)}1 * * * *`)).toBe(
      'bad_schedule: A cron expression has at most 256 characters.',
    )
  })

  test('it runs when croner says it runs', () => {
    const expression = fc
      .tuple(
        fc.constantFrom('', '0 ', '15 ', '*/20 '),
        fc.constantFrom('0', '30', '*/7', '0,30', '10-20', '*'),
        fc.constantFrom('*', '*/2', '0', '1', '2', '1-3', '2,3', '23'),
        fc.constantFrom('*', '*/2', 'L', '25-31', '1'),
        fc.constantFrom('*', '3', '10', '3,10', '4,11', '*/5'),
        fc.constantFrom('*', 'SUN', 'SUN#L', 'SUN#1', '+SUN', 'MON-FRI'),
      )
      .map(([second, ...rest]) => second + rest.join(' '))
    const zone = fc.constantFrom(
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'America/Nuuk',
      'UTC',
    )
    fc.assert(
      fc.property(expression, zone, aroundClockChanges, (value, timezone, after) => {
        const found = nextRun({ schedule_type: 'cron', schedule_value: value, timezone }, after)
        // What is refused here is what croner would search for far too long.
        if (found.ok) expect(found.at).toEqual(new Cron(value, { timezone }).nextRun(after))
      }),
      { numRuns: 500 },
    )
  })
})

const aroundClockChanges = fc
  .tuple(
    fc.constantFrom(
      '2026-03-29T01:00:00Z',
      '2026-10-25T01:00:00Z',
      '2026-03-08T07:00:00Z',
      '2026-11-01T06:00:00Z',
      '2026-04-04T15:00:00Z',
      '2026-10-03T15:30:00Z',
      '2026-03-29T01:00:00Z',
      '2026-12-31T23:30:00Z',
    ),
    fc.integer({ min: -86_400_000, max: 86_400_000 }),
  )
  .map(
    ([change, distance]) =>
      new Date(Date.parse(change) + Math.floor(distance / (distance % 7 === 0 ? 20 : 1))),
  )

describe('interval', () => {
  test.each([
    ['1000', '2026-01-15T12:00:01.000Z'],
    ['60000', '2026-01-15T12:01:00.000Z'],
    ['0060000', '2026-01-15T12:01:00.000Z'],
    ['31536000000', '2027-01-15T12:00:00.000Z'],
  ])('%s milliseconds from now', (value, expected) => {
    expect(next('interval', value, noon)).toBe(expected)
  })

  test('the clock on the wall does not matter', () => {
    expect(next('interval', '86400000', '2026-03-28T12:00:00.000Z')).toBe('2026-03-29T12:00:00.000Z')
  })

  test.each([
    '1',
    '0',
    '999',
    '31536000001',
    '1e30',
    '1e4',
    '12abc',
    '-5',
    '-60000',
    '+60000',
    ' 1000',
    '1000 ',
    '1000\n',
    '1000.5',
    '1_000',
    '0x1000',
    '',
    '٦٠٠٠٠',
    'Infinity',
    'NaN',
    '9'.repeat(256),
    'hourly',
  ])('%j is refused with what would be right', value => {
    expect(reason('interval', value)).toBe(
      'bad_schedule: An interval is a whole number of milliseconds in digits only, from 1000 (a second) to 31536000000 (a year).',
    )
  })
})

describe('once', () => {
  afterEach(() => vi.unstubAllEnvs())

  test.each([
    ['2026-01-15T12:00:01Z', '2026-01-15T12:00:01.000Z'],
    ['2026-01-15T12:00:00.001Z', '2026-01-15T12:00:00.001Z'],
    ['2026-01-15T12:00:00.999999+00:00', '2026-01-15T12:00:00.999Z'],
    ['2026-02-01T09:00Z', '2026-02-01T09:00:00.000Z'],
    ['2026-02-01T09:00:00+05:30', '2026-02-01T03:30:00.000Z'],
    ['2026-02-01T09:00:00-08:00', '2026-02-01T17:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is an instant', (value, expected) => {
    expect(next('once', value, noon)).toBe(expected)
  })

  test('without an offset it is local time in the zone of the task', () => {
    expect(next('once', '2026-02-01T09:00:00', noon)).toBe('2026-02-01T08:00:00.000Z')
    expect(next('once', '2026-07-01T09:00', noon)).toBe('2026-07-01T07:00:00.000Z')
    expect(next('once', '2026-07-01T09:00:00.250', noon, 'America/New_York')).toBe('2026-07-01T13:00:00.250Z')
    expect(next('once', '2026-07-01T09:00:00', noon, 'Asia/Kathmandu')).toBe('2026-07-01T03:15:00.000Z')
  })

  test('the zone of the machine has no say in it', () => {
    // 02:30 does not exist that day in New York, where a careless reading would make it 03:30.
    const machines = { UTC: 2, 'America/New_York': 7, 'Asia/Tokyo': 17 }
    for (const [machine, utcHours] of Object.entries(machines)) {
      vi.stubEnv('TZ', machine)
      expect(new Date('2026-03-08T02:30:00').getUTCHours()).toBe(utcHours)
      expect(next('once', '2026-03-08T02:30:00', noon)).toBe('2026-03-08T01:30:00.000Z')
      expect(next('cron', '30 2 8 3 *', noon)).toBe('2026-03-08T01:30:00.000Z')
    }
  })

  test('a local time that the clock jumps over is as much later as the jump is long', () => {
    expect(next('once', '2026-03-29T02:30:00', noon)).toBe('2026-03-29T01:30:00.000Z')
    expect(next('once', '2026-03-08T02:30:00', noon, 'America/New_York')).toBe('2026-03-08T07:30:00.000Z')
    expect(next('once', '2026-10-04T02:15:00', noon, 'Australia/Lord_Howe')).toBe('2026-10-03T15:45:00.000Z')
  })

  test('a local time that comes twice is the first of the two; an offset can name the second', () => {
    expect(next('once', '2026-10-25T02:30:00', noon)).toBe('2026-10-25T00:30:00.000Z')
    expect(next('once', '2026-10-25T02:30:00+01:00', noon)).toBe('2026-10-25T01:30:00.000Z')
    expect(next('once', '2026-11-01T01:30:00', noon, 'America/New_York')).toBe('2026-11-01T05:30:00.000Z')
  })

  test.each(['2026-01-15T12:00:00Z', '2026-01-15T13:00:00', '2020-01-01T00:00:00Z', '0050-01-01T00:00:00Z'])(
    '%s is not in the future',
    value => {
      expect(reason('once', value)).toBe(
        'bad_schedule: The time has passed. Give one in the future as schedule_value.',
      )
    },
  )

  test.each([
    '2026-02-30T00:00:00Z',
    '2026-02-30T00:00:00',
    '2027-02-29T00:00:00',
    '2100-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-06-00T00:00:00Z',
    '2026-06-01T24:00:00Z',
    '2026-06-01T23:60:00Z',
    '2026-06-01T23:59:60Z',
  ])('there is no %s', value => {
    expect(reason('once', value)).toBe('bad_schedule: There is no such date or time of day.')
  })

  test.each([
    '',
    'tomorrow',
    '2030-01-31',
    '2030-01-31 09:00:00',
    '2030-01-31t09:00:00z',
    ' 2030-01-31T09:00:00Z',
    '2030-01-31T09:00:00Z\n',
    '2030-1-31T09:00:00Z',
    '20300131T090000Z',
    '2030-01-31T09Z',
    '2030-01-31T09:00:00+01',
    '2030-01-31T09:00:00+0100',
    '2030-01-31T09:00:00[Europe/Berlin]',
    '2030-01-31T09:00:00.Z',
    '2030-W05-4T09:00:00Z',
    '+012030-01-31T09:00:00Z',
    '1893488400000',
    'Thu, 31 Jan 2030 09:00:00 GMT',
    '0 9 * * *',
  ])('%j is not written as a time', value => {
    expect(reason('once', value)).toContain('bad_schedule: A time is written in ISO 8601')
  })

  test('an offset or a year that does not exist is refused', () => {
    expect(reason('once', '2030-01-31T09:00:00+25:00')).toContain('There is no such offset')
    expect(reason('once', '2030-01-31T09:00:00+01:60')).toContain('There is no such offset')
    expect(reason('once', '9999-12-31T23:00:00-12:00')).toContain('beyond the year 9999')
  })
})

test.each<[Type, string]>([
  ['cron', '0 9 * * *'],
  ['interval', '60000'],
  ['once', '2030-01-31T09:00:00Z'],
])('%s needs a zone that exists', (type, value) => {
  const zones = [
    '',
    'Mars/Olympus',
    '+01:00',
    'UTC+1',
    'Europe/Berlin ',
    'Europe/Berlin\n',
    '../etc/passwd',
    '__proto__',
  ]
  for (const zone of zones) {
    expect(reason(type, value, zone)).toBe(
      'bad_schedule: The timezone is not the name of one, such as Europe/Berlin or UTC.',
    )
  }
})

test('a refusal repeats nothing of what was refused', () => {
  const secret = '5ecret'
  for (const type of ['cron', 'interval', 'once'] as const) {
    for (const value of [secret, `${secret} * * * *`, `* * * * ${secret}`, `2030-01-31T09:00:00${secret}`]) {
      expect(reason(type, value)).not.toContain(secret)
      expect(reason(type, '60000', secret)).not.toContain(secret)
    }
  }
})

const plausible = fc.oneof(
  fc.record({
    schedule_type: fc.constant<Type>('cron'),
    schedule_value: fc
      .array(
        fc.constantFrom('*', '*/3', '1', '2', '1-5', '0,7', 'L', '29', 'SUN#L', '+5', 'MAR', '?', '61', ''),
        {
          minLength: 4,
          maxLength: 7,
        },
      )
      .map(parts => parts.join(' ')),
  }),
  fc.record({
    schedule_type: fc.constant<Type>('interval'),
    schedule_value: fc.oneof(fc.integer({ min: -5, max: 40_000_000_000 }).map(String), fc.string()),
  }),
  fc.record({
    schedule_type: fc.constant<Type>('once'),
    schedule_value: fc.oneof(
      fc.date({ noInvalidDate: true }).map(date => date.toISOString()),
      fc.date({ noInvalidDate: true }).map(date => date.toISOString().slice(0, 19)),
      fc.string(),
    ),
  }),
)

test('the next run is always later than the moment it is asked from', () => {
  const zone = fc.constantFrom(
    'UTC',
    'Europe/Berlin',
    'America/New_York',
    'Asia/Kolkata',
    'Pacific/Apia',
    'nowhere',
  )
  const moment = fc.oneof(
    aroundClockChanges,
    fc.date({
      min: new Date('1990-01-01T00:00:00Z'),
      max: new Date('2150-01-01T00:00:00Z'),
      noInvalidDate: true,
    }),
  )
  fc.assert(
    fc.property(plausible, zone, moment, (schedule, timezone, after) => {
      const result = nextRun({ ...schedule, timezone }, after)
      if (!result.ok) expect(result.error.code).toBe('bad_schedule')
      else expect(result.at.getTime()).toBeGreaterThan(after.getTime())
    }),
    { numRuns: 1000 },
  )
})
