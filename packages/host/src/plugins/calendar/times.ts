import { ServiceRefusal } from '../../services/define.ts'
import { dayMs, type Range } from './days.ts'
import { namedClock } from './zones.ts'

/** Times as agents write and read them: ISO 8601, in the configured zone where nothing else is said. */
/** A day, or an instant. Days are kept as walls are, at midnight. */
export type Moment = { kind: 'day'; wall: number } | { kind: 'instant'; at: number }

const pattern =
  /^(?<date>\d{4}-\d\d-\d\d)(?:[Tt ](?<minute>\d\d:\d\d)(?::(?<second>\d\d)(?:[.,]\d{1,9})?)?(?<offset>[Zz]|[+-]\d\d:?\d\d)?)?$/

const firstYear = 1900
const lastYear = 2200

export function momentOf(name: string, text: string, zone: string): Moment {
  const refuse = (why: string) => new ServiceRefusal('invalid_field', `${name}: ${why}`)
  const groups = pattern.exec(text.trim())?.groups
  if (!groups) {
    throw refuse(
      `must be a date such as 2030-01-31, or a time such as 2030-01-31T09:00:00 in ${zone}, or with Z or an offset such as +01:00`,
    )
  }
  const { date, minute, second = '00', offset } = groups
  const local = `${date}T${minute ?? '00:00'}:${second}`
  const wall = Date.parse(`${local}Z`)
  // Where the calendar ends early the runtime counts on into the next month; what comes back must be what was asked.
  if (Number.isNaN(wall) || new Date(wall).toISOString().slice(0, 19) !== local)
    throw refuse('there is no such date or time of day')
  const year = new Date(wall).getUTCFullYear()
  if (year < firstYear || year > lastYear) throw refuse(`must lie between ${firstYear} and ${lastYear}`)
  if (minute === undefined) return { kind: 'day', wall }
  if (offset === undefined) return { kind: 'instant', at: namedClock(zone).instantAt(wall) }
  const upper = offset.toUpperCase()
  const at = Date.parse(local + (upper.length === 5 ? `${upper.slice(0, 3)}:${upper.slice(3)}` : upper))
  if (Number.isNaN(at)) throw refuse('there is no such offset from UTC; one is written as +01:00')
  return { kind: 'instant', at }
}

/** As the clock in the zone shows it, with its offset: `2030-01-31T09:00:00+01:00`. */
export function timeText(instant: number, zone: string): string {
  const wall = namedClock(zone).wallAt(instant)
  const minutes = Math.round((wall - instant) / 60_000)
  const two = (value: number) => String(value).padStart(2, '0')
  const size = Math.abs(minutes)
  const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
  return `${new Date(wall).toISOString().slice(0, 19)}${offset}`
}

const longestDays = 366
const usualDays = 7

/** What `start_date` and `end_date` mean: from today, for a week; an end that is a day is meant with all its hours. */
export function rangeOf(
  start: string | undefined,
  end: string | undefined,
  zone: string,
  now: number,
): Range {
  const clock = namedClock(zone)
  const today = Math.floor(clock.wallAt(now) / dayMs) * dayMs
  const begin: Moment =
    start === undefined ? { kind: 'day', wall: today } : momentOf('start_date', start, zone)
  const from = begin.kind === 'day' ? clock.instantAt(begin.wall) : begin.at
  const usual = (): Moment => ({
    kind: 'day',
    wall:
      (begin.kind === 'day' ? begin.wall : Math.floor(clock.wallAt(begin.at) / dayMs) * dayMs) +
      usualDays * dayMs,
  })
  const last = end === undefined ? usual() : momentOf('end_date', end, zone)
  const to = last.kind === 'day' ? clock.instantAt(last.wall + dayMs) : last.at
  if (to <= from) throw new ServiceRefusal('invalid_field', 'end_date: must not lie before start_date')
  // A day more than the limit, for clocks that go back.
  if (to - from > (longestDays + 1) * dayMs)
    throw new ServiceRefusal(
      'invalid_field',
      `end_date: may lie at most ${longestDays} days after start_date`,
    )
  return { from, to }
}
