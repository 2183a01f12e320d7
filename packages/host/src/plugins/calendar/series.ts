import ICAL from 'ical.js'
import { dayMs, dayText } from './days.ts'
import { Unreadable } from './recurrence.ts'
import { type Clocks, isUtc, utcClock, type WallClock, wallOf } from './zones.ts'

/** An event with all that is said of single times of it. */
export interface Series {
  master: Part | undefined
  overrides: Override[]
  /** times besides those of the rules */
  extra: Moment[]
  /** whether this time of the event is called off */
  isExcluded(wall: number): boolean
}

/** One VEVENT, its times resolved. */
export interface Part {
  component: ICAL.Component
  /** when it begins: on its own clock, and in truth */
  wall: number
  start: number
  isDate: boolean
  clock: WallClock
  zoneName: string | undefined
  /** the zone its times are written in, which nobody knows */
  unknownZone: string | undefined
  /** when it ends if it begins with this reading of its clock */
  endOf(wall: number): number
  isCancelled: boolean
}

/** What is said of one time of the series, or of that one and all later ones. */
export interface Override extends Part {
  key: string
  /** the time it takes the place of */
  instead: Moment
  isForAllLater: boolean
}

interface Moment {
  wall: number
  instant: number
  isDate: boolean
  clock: WallClock
  zoneName: string | undefined
  isKnown: boolean
  /** of a period: when it ends */
  end: number | undefined
}

export function parse(text: string): ICAL.Component {
  const calendar = new ICAL.Component(ICAL.parse(text))
  if (calendar.name !== 'vcalendar') throw new Unreadable('it is not one calendar object')
  return calendar
}

/** The events of one calendar object, by their UID. */
export function seriesIn(calendar: ICAL.Component, clocks: Clocks): Series[] {
  const byId = new Map<string, ICAL.Component[]>()
  for (const component of calendar.getAllSubcomponents('vevent')) {
    const id = String(component.getFirstPropertyValue('uid') ?? '')
    const known = byId.get(id)
    if (known) known.push(component)
    else byId.set(id, [component])
  }
  return [...byId.values()].map(components => seriesOf(components, clocks))
}

function seriesOf(components: readonly ICAL.Component[], clocks: Clocks): Series {
  const overrides: Override[] = []
  let master: Part | undefined
  for (const component of components) {
    const part = readPart(component, clocks)
    const [instead] = momentsIn(component, 'recurrence-id', clocks)
    if (!instead) master ??= part
    else {
      const property = component.getFirstProperty('recurrence-id')
      const isForAllLater = property?.getFirstParameter('range') === 'THISANDFUTURE'
      overrides.push({ ...part, key: keyOf(instead.wall, instead), instead, isForAllLater })
    }
  }
  if (master?.component.hasProperty('exrule'))
    throw new Unreadable('it has a rule for exceptions, which is not supported')
  return {
    master,
    overrides,
    extra: master ? momentsIn(master.component, 'rdate', clocks) : [],
    isExcluded: master ? exclusionsOf(master, momentsIn(master.component, 'exdate', clocks)) : () => false,
  }
}

/** Which time of a series this is: a day, or an instant. */
export const keyOf = (wall: number, { isDate, clock }: Pick<Part, 'isDate' | 'clock'>): string =>
  isDate ? dayText(wall) : new Date(clock.instantAt(wall)).toISOString()

function exclusionsOf(master: Part, moments: readonly Moment[]): (wall: number) => boolean {
  const isDay = (moment: Moment) => moment.isDate || master.isDate
  const days = new Set(moments.filter(isDay).map(({ wall }) => dayText(wall)))
  const instants = new Set(moments.filter(moment => !isDay(moment)).map(({ instant }) => instant))
  return wall =>
    (days.size > 0 && days.has(dayText(wall))) ||
    (instants.size > 0 && instants.has(master.clock.instantAt(wall)))
}

function momentsIn(component: ICAL.Component, name: string, clocks: Clocks): Moment[] {
  return component.getAllProperties(name).flatMap(property => {
    const zoneName = property.getFirstParameter('tzid') || undefined
    const read = (value: unknown): Moment[] => {
      const time = value instanceof ICAL.Period ? value.start : value
      if (!(time instanceof ICAL.Time)) return []
      const { clock, isKnown } = isUtc(time)
        ? { clock: utcClock, isKnown: true }
        : clocks.of(time.isDate ? undefined : zoneName)
      const wall = wallOf(time)
      if (!isReal(wall)) throw new Unreadable('it lies beyond all calendars')
      const instant = clock.instantAt(wall)
      const moment = { wall, instant, isDate: time.isDate, clock, zoneName, isKnown, end: undefined }
      if (!(value instanceof ICAL.Period)) return [moment]
      const end = value.end ? clock.instantAt(wallOf(value.end)) : instant + lengthOf(value.duration)
      return [{ ...moment, end: isReal(end) ? end : instant }]
    }
    return property.getValues().flatMap(read)
  })
}

const lengthOf = (duration: ICAL.Duration | null): number => (duration?.toSeconds() ?? 0) * 1000

/** The years that dates in ISO 8601 can tell of. */
const isReal = (wall: number): boolean => wall >= Date.UTC(1, 0, 1) && wall < Date.UTC(9999, 0, 1)

function readPart(component: ICAL.Component, clocks: Clocks): Part {
  const [begin] = momentsIn(component, 'dtstart', clocks)
  if (!begin) throw new Unreadable('it has no time at which it begins')
  const { wall, instant: start, isDate, clock, isKnown } = begin
  const { days, restMs } = lengthIn(component, begin, momentsIn(component, 'dtend', clocks)[0])
  const endOf = (from: number) => clock.instantAt(from + days * dayMs) + restMs
  if (!isReal(wall + days * dayMs + restMs)) throw new Unreadable('it lies beyond all calendars')
  const zoneName = isDate ? undefined : begin.zoneName
  return {
    ...{ component, wall, start, isDate, clock, zoneName, endOf },
    unknownZone: isKnown ? undefined : zoneName,
    isCancelled: String(component.getFirstPropertyValue('status') ?? '').toUpperCase() === 'CANCELLED',
  }
}

/**
 * By the standard an end means the same length of time each time, and a duration in days the same reading of the
 * clock. A day without either is that day; a time without either takes no time.
 */
function lengthIn(component: ICAL.Component, begin: Moment, end: Moment | undefined) {
  const { isDate } = begin
  if (end) {
    return isDate
      ? { days: Math.max(1, Math.round((end.wall - begin.wall) / dayMs)), restMs: 0 }
      : { days: 0, restMs: Math.max(0, end.instant - begin.instant) }
  }
  const duration = component.getFirstPropertyValue('duration')
  if (!(duration instanceof ICAL.Duration) || duration.isNegative) return { days: isDate ? 1 : 0, restMs: 0 }
  const days = duration.weeks * 7 + duration.days
  const restMs = ((duration.hours * 60 + duration.minutes) * 60 + duration.seconds) * 1000
  return isDate ? { days: Math.max(1, days + Math.ceil(restMs / dayMs)), restMs: 0 } : { days, restMs }
}
