import ICAL from 'ical.js'
import { instantOf, reading, resolveZone, wallTime } from '../../base/time-zone.ts'
import { dayMs } from './days.ts'

/**
 * What a clock on the wall shows is kept as milliseconds as if the wall hung in Greenwich, so that one can count with
 * it. A time that comes twice is the first of the two; one that the clock jumps over is as much later as the jump is
 * long. Calendar data is hostile: a stranger's invitation must not make us count for ever.
 */
export interface WallClock {
  instantAt(wall: number): number
  wallAt(instant: number): number
}

export const utcClock: WallClock = { instantAt: wall => wall, wallAt: instant => instant }

export const namedClock = (zone: string): WallClock => ({
  instantAt(wall) {
    const shown = new Date(wall)
    const whole = {
      year: shown.getUTCFullYear(),
      month: shown.getUTCMonth(),
      day: shown.getUTCDate(),
      hour: shown.getUTCHours(),
      minute: shown.getUTCMinutes(),
      second: shown.getUTCSeconds(),
    }
    return instantOf(whole, zone) + shown.getUTCMilliseconds()
  },
  wallAt: instant => reading(wallTime(instant, zone)) + (((instant % 1000) + 1000) % 1000),
})

export const wallOf = (time: ICAL.Time): number =>
  Date.UTC(time.year, time.month - 1, time.day, time.hour, time.minute, time.second)

interface Change {
  at: number
  before: number
  after: number
}

/** so many changes of one clock are counted: two a year since 1601, where Outlook begins, and some */
const mostChanges = 2000

/** The clock that a file describes itself, in the years up to `lastYear`; undefined: its words make no clock. */
function describedClock(zone: ICAL.Component, lastYear: number): WallClock | undefined {
  const changes: Change[] = []
  for (const name of ['standard', 'daylight']) {
    for (const part of zone.getAllSubcomponents(name)) {
      const found = changesOf(part, lastYear)
      if (!found || changes.length + found.length > mostChanges) return undefined
      changes.push(...found)
    }
  }
  changes.sort((one, other) => one.at - other.at)
  const [first] = changes
  if (!first) return undefined
  const offsetAt = (instant: number): number => {
    let [low, high] = [0, changes.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((changes[middle]?.at ?? 0) <= instant) low = middle + 1
      else high = middle
    }
    return low === 0 ? first.before : (changes[low - 1]?.after ?? first.before)
  }
  return {
    wallAt: instant => instant + offsetAt(instant),
    instantAt(wall) {
      const before = wall - offsetAt(wall - dayMs)
      const after = wall - offsetAt(wall + dayMs)
      const shown = [before, after].filter(instant => instant + offsetAt(instant) === wall)
      return shown.length > 0 ? Math.min(...shown) : before
    },
  }
}

function changesOf(part: ICAL.Component, lastYear: number): Change[] | undefined {
  const offset = (name: string): number | undefined => {
    const value = part.getFirstPropertyValue(name)
    return value instanceof ICAL.UtcOffset ? value.toSeconds() * 1000 : undefined
  }
  const start = part.getFirstPropertyValue('dtstart')
  const [before, after] = [offset('tzoffsetfrom'), offset('tzoffsetto')]
  if (!(start instanceof ICAL.Time) || before === undefined || after === undefined) return undefined
  const walls = new Set([wallOf(start)])
  for (const property of part.getAllProperties('rdate')) {
    for (const value of property.getValues()) if (value instanceof ICAL.Time) walls.add(wallOf(value))
  }
  for (const property of part.getAllProperties('rrule')) {
    const rule = property.getFirstValue()
    if (!(rule instanceof ICAL.Recur) || !isYearly(rule)) return undefined
    const until = rule.until && wallOf(rule.until) + (isUtc(rule.until) ? before : 0)
    const endless = ICAL.Recur.fromData({ ...rule.toJSON(), until: undefined, count: undefined })
    const iterator = endless.iterator(floating(start))
    for (let count = 0; !(rule.count && count >= rule.count); count++) {
      const next = iterator.next()
      if (!next || next.year > lastYear || (until && wallOf(next) > until)) break
      walls.add(wallOf(next))
      if (walls.size > mostChanges) return undefined
    }
  }
  return [...walls].map(wall => ({ at: wall - before, before, after }))
}

const yearlyParts = new Set(['BYMONTH', 'BYDAY', 'BYMONTHDAY'])

const isYearly = (rule: ICAL.Recur): boolean =>
  rule.freq === 'YEARLY' &&
  rule.interval <= 100 &&
  Object.keys(rule.parts).every(part => yearlyParts.has(part))

export const isUtc = (time: ICAL.Time): boolean => time.zone === ICAL.Timezone.utcTimezone

const floating = ({ year, month, day, hour, minute, second }: ICAL.Time): ICAL.Time =>
  new ICAL.Time({ year, month, day, hour, minute, second }, ICAL.Timezone.localTimezone)

/** The last words of names such as `/mozilla.org/20050126_1/Europe/Berlin`. */
const placeName = /[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+){1,2}$/

/** A zone of the world by the name a file calls it; undefined: the runtime knows none. */
const zoneNamed = (name: string): string | undefined => {
  const place = placeName.exec(name)?.[0]
  return resolveZone(name) ?? (place === undefined ? undefined : resolveZone(place))
}

export interface Clocks {
  /** `isKnown`: false where nothing tells what the name means, and the clock is the one at home */
  of(name: string | undefined): { clock: WallClock; isKnown: boolean }
}

/**
 * The clocks that one file speaks of. A place such as Europe/Berlin is what the runtime knows of it, which is newer than
 * what was copied into the file; every other name is what the file says it is.
 */
export function clocksOf(
  calendar: ICAL.Component,
  home: WallClock,
  lastYear: number,
  described: DescribedClocks,
): Clocks {
  const found = new Map<string, { clock: WallClock; isKnown: boolean }>()
  const find = (name: string) => {
    const zone = zoneNamed(name)
    if (zone !== undefined && name.includes('/')) return { clock: namedClock(zone), isKnown: true }
    const own = calendar
      .getAllSubcomponents('vtimezone')
      .find(part => part.getFirstPropertyValue('tzid') === name)
    const clock = own && described(own, lastYear)
    if (clock) return { clock, isKnown: true }
    return zone === undefined ? { clock: home, isKnown: false } : { clock: namedClock(zone), isKnown: true }
  }
  return {
    of(name) {
      if (name === undefined) return { clock: home, isKnown: true }
      const known = found.get(name) ?? find(name)
      found.set(name, known)
      return known
    },
  }
}

type DescribedClocks = typeof describedClock

/** Every object of a calendar brings the same description along; it is counted out once. */
export function rememberClocks(): DescribedClocks {
  const remembered = new Map<string, WallClock | undefined>()
  return (zone, lastYear) => {
    const key = `${lastYear} ${JSON.stringify(zone.toJSON())}`
    if (!remembered.has(key)) remembered.set(key, describedClock(zone, lastYear))
    return remembered.get(key)
  }
}
