import ICAL from 'ical.js'
import { dayMs } from './days.ts'
import { isUtc, type WallClock, wallOf } from './zones.ts'

/** Why an event cannot be told of as it is, in words for whoever asked. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

/** Where a rule's times are wanted, in readings of the event's own clock. */
export interface Window {
  from: number
  to: number
}

/** How much counting one object may cost; what goes beyond it is not told. */
export interface Budget {
  steps: number
}

interface Start {
  wall: number
  isDate: boolean
  clock: WallClock
}

/**
 * The times of a rule within the window, in order. The first time of an event belongs to it in any case and is not
 * told here.
 */
export function* timesOf(rule: ICAL.Recur, start: Start, window: Window, budget: Budget): Generator<number> {
  checkSupport(rule)
  const until = Math.min(rule.until ? lastWall(rule.until, start) : Number.POSITIVE_INFINITY, window.to)
  const isSteady = rule.freq in steadyMs
  // Where every period has one time, those before the window need not be counted one by one.
  const isPlain = Object.keys(rule.parts).length === 0
  const skipped = isSteady && (isPlain || !rule.count) ? periodsBefore(rule, start, window.from) : 0
  // The event's first time counts, whether the rule names it or not.
  let left = (rule.count ?? Number.POSITIVE_INFINITY) - Math.max(1, skipped)
  for (const wall of isSteady ? steadyTimes(rule, start, skipped) : calendarTimes(rule, start, until)) {
    if (budget.steps-- <= 0) throw new Unreadable('it repeats too often to be counted')
    const time = typeof wall === 'number' ? wall : wall.before
    if (time > until || left <= 0) return
    if (typeof wall !== 'number' || wall <= start.wall || !fits(rule, wall)) continue
    left--
    if (wall >= window.from) yield wall
  }
}

function lastWall(until: ICAL.Time, { isDate, clock }: Start): number {
  const wall = wallOf(until)
  // A day is meant with all its hours; for an event of whole days only the day counts.
  if (until.isDate) return wall + dayMs - 1
  if (isDate) return wall
  return isUtc(until) ? clock.wallAt(wall) : wall
}

/** What is counted wrongly or not at all. Better no event than one on the wrong day. */
function checkSupport({ freq, parts }: ICAL.Recur): void {
  const isOfMonth = freq === 'MONTHLY' || (freq === 'YEARLY' && 'BYMONTH' in parts)
  if ('BYWEEKNO' in parts) throw new Unreadable('its rule names weeks of the year, which is not supported')
  if ('BYYEARDAY' in parts && freq !== 'YEARLY')
    throw new Unreadable('its rule names days of the year, which is not supported')
  if ('BYSETPOS' in parts && !(isOfMonth && 'BYDAY' in parts && !('BYMONTHDAY' in parts)))
    throw new Unreadable('its rule picks positions in a way that is not supported')
  if (parts.BYDAY?.some(day => /\d\d/.test(day)))
    throw new Unreadable('its rule counts weekdays through the year, which is not supported')
}

const weekdays = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']

function fits({ parts }: ICAL.Recur, wall: number): boolean {
  const { BYMONTH, BYMONTHDAY, BYDAY } = parts
  const shown = new Date(wall)
  if (BYMONTH && !BYMONTH.includes(shown.getUTCMonth() + 1)) return false
  if (BYDAY && !BYDAY.some(day => day.endsWith(weekdays[shown.getUTCDay()] ?? ''))) return false
  if (!BYMONTHDAY) return true
  const days = new Date(Date.UTC(shown.getUTCFullYear(), shown.getUTCMonth() + 1, 0)).getUTCDate()
  return BYMONTHDAY.some(day => (day < 0 ? days + 1 + day : day) === shown.getUTCDate())
}

/** Periods that are always as long on the wall. The library may look for a time in them for ever. */
const steadyMs: Readonly<Record<string, number>> = {
  SECONDLY: 1000,
  MINUTELY: 60_000,
  HOURLY: 3_600_000,
  DAILY: dayMs,
  WEEKLY: 7 * dayMs,
}

const periodOf = ({ freq, interval }: ICAL.Recur): number => (steadyMs[freq] ?? dayMs) * interval

/** With one to spare, for periods that begin before their first time. */
const periodsBefore = (rule: ICAL.Recur, start: Start, from: number): number =>
  Math.max(0, Math.floor((from - start.wall) / periodOf(rule)) - 1)

const clockUnits = [
  { part: 'BYHOUR', ms: 3_600_000, count: 24 },
  { part: 'BYMINUTE', ms: 60_000, count: 60 },
  { part: 'BYSECOND', ms: 1000, count: 60 },
] as const

const remainder = (value: number, by: number): number => ((value % by) + by) % by

/** Where a steady rule goes on without a time: it may be past the end by then. */
interface Pause {
  before: number
}

function* steadyTimes(rule: ICAL.Recur, start: Start, skipped: number): Generator<number | Pause> {
  const { freq, parts } = rule
  const unit = steadyMs[freq] ?? dayMs
  const weekday = (day: string) => remainder(weekdays.indexOf(day.slice(-2)) - (rule.wkst - 1), 7)
  const intoWeek = remainder(new Date(start.wall).getUTCDay() - (rule.wkst - 1), 7)
  let offsets = [0]
  let first = start.wall - remainder(start.wall, unit)
  if (freq === 'WEEKLY') {
    first = start.wall - remainder(start.wall, dayMs) - intoWeek * dayMs
    offsets = (parts.BYDAY?.map(weekday) ?? [intoWeek]).map(day => day * dayMs)
  }
  const narrowing: ((wall: number) => boolean)[] = []
  for (const { part, ms, count } of start.isDate ? [] : clockUnits) {
    const named = parts[part]
    const own = Math.floor(remainder(start.wall, ms * count) / ms)
    if (ms < unit) offsets = offsets.flatMap(offset => (named ?? [own]).map(value => offset + value * ms))
    else if (named) narrowing.push(wall => named.includes(Math.floor(remainder(wall, ms * count) / ms)))
  }
  const sorted = [...new Set(offsets)].sort((one, other) => one - other)
  for (let begin = first + skipped * periodOf(rule); ; begin += periodOf(rule)) {
    for (const offset of sorted) {
      const wall = begin + offset
      yield narrowing.every(admits => admits(wall)) ? wall : { before: wall }
    }
  }
}

/** Months and years, by the library. It slips from days that a month does not have into the next one. */
function* calendarTimes(given: ICAL.Recur, start: Start, end: number): Generator<number | Pause> {
  // Without an end it looks for days that never come until the year 20000.
  const until = timeAt(end + dayMs, false)
  const rule = ICAL.Recur.fromData({ ...given.toJSON(), until, count: undefined })
  const hasOwnDay = Object.keys(rule.parts).every(part => part === 'BYMONTH')
  const iterator = rule.iterator(timeAt(start.wall, start.isDate))
  for (let next = iterator.next(); next; next = iterator.next()) {
    const wall = wallOf(next)
    yield hasOwnDay && next.day !== new Date(start.wall).getUTCDate() ? { before: wall } : wall
  }
}

/** A reading of a clock that hangs nowhere: the library then counts without asking any zone. */
export const timeAt = (wall: number, isDate: boolean): ICAL.Time => {
  const shown = new Date(wall)
  const clock = { hour: shown.getUTCHours(), minute: shown.getUTCMinutes(), second: shown.getUTCSeconds() }
  return new ICAL.Time(
    {
      year: shown.getUTCFullYear(),
      month: shown.getUTCMonth() + 1,
      day: shown.getUTCDate(),
      ...(isDate ? { isDate } : clock),
    },
    ICAL.Timezone.localTimezone,
  )
}
