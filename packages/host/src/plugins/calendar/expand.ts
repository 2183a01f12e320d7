import ICAL from 'ical.js'
import { dayMs, type Range } from './days.ts'
import { type Budget, timesOf, type Window } from './recurrence.ts'
import { keyOf, type Override, type Part, parse, type Series, seriesIn } from './series.ts'
import { type Clocks, clocksOf, namedClock, type rememberClocks } from './zones.ts'

/** One event as it takes place: a single one, or one time of a series. */
export interface Instance {
  /** which time of the series it is; undefined: it is no series */
  key: string | undefined
  start: number
  end: number
  /** of whole days: the first one and the one after the last, as walls */
  days: { first: number; end: number } | undefined
  title: string
  location: string | undefined
  description: string | undefined
  isTentative: boolean
  /** the zone its times are written in, which nobody knows */
  unknownZone: string | undefined
}

export interface ExpandOptions {
  range: Range
  /** the zone of times that name none, and of whole days */
  zone: string
  /** so many instances are told, the first ones */
  most: number
  /** how much counting the object may cost */
  steps: number
  describedClock: ReturnType<typeof rememberClocks>
}

export interface Expanded {
  instances: Instance[]
  /** there are later ones in the range */
  more: boolean
}

/** Everything in one calendar object that takes place in the range. */
export function expand(text: string, options: ExpandOptions): Expanded {
  const calendar = parse(text)
  const budget = { steps: options.steps }
  const found = seriesIn(calendar, clocksFor(calendar, options)).map(series =>
    instancesOf(series, options, budget),
  )
  return {
    instances: found.flatMap(({ instances }) => instances),
    more: found.some(({ more }) => more),
  }
}

export const clocksFor = (
  calendar: ICAL.Component,
  { zone, range, describedClock }: Pick<ExpandOptions, 'zone' | 'range' | 'describedClock'>,
): Clocks => clocksOf(calendar, namedClock(zone), new Date(range.to).getUTCFullYear() + 2, describedClock)

/** What clocks may be put forward or back, twice. */
const clockMs = 3 * 3_600_000

function instancesOf(series: Series, { range, most }: ExpandOptions, budget: Budget): Expanded {
  const { master, overrides } = series
  const reaches = ({ start, end }: Instance) =>
    start < range.to && (end > range.from || (start === end && start >= range.from))
  const moved = overrides
    .map(override => overridden(series, override))
    .filter(isThere)
    .filter(reaches)
  if (!master || master.isCancelled) return { instances: moved, more: false }

  const longest = Math.max(...[master, ...overrides].map(part => part.endOf(part.wall) - part.start))
  const shifts = overrides.filter(({ isForAllLater }) => isForAllLater).map(shiftOf)
  const margin = master.isDate ? dayMs : clockMs
  const window = {
    from: master.clock.wallAt(range.from) - longest - Math.max(0, ...shifts) - margin,
    to: master.clock.wallAt(range.to) - Math.min(0, ...shifts) + margin,
  }
  const own: Instance[] = []
  let more = false
  for (const source of occurrencesIn(series, window, budget)) {
    let told = 0
    for (const occurrence of source) {
      const instance = instanceAt(series, master, occurrence)
      if (!instance || !reaches(instance)) continue
      if (++told > most) {
        more = true
        break
      }
      own.push(instance)
    }
  }
  const once = new Map([...moved, ...own].map(instance => [instance.key ?? '', instance]))
  return { instances: [...once.values()], more }
}

/** One time of the series by its key, as it is now; undefined: there is none, or no longer. */
export function findInstance(series: Series, key: string, steps: number): Instance | undefined {
  const { master, overrides } = series
  const override = overrides.find(one => one.key === key)
  if (override) return overridden(series, override)
  if (!master || master.isCancelled) return undefined
  const instant = Date.parse(key)
  if (Number.isNaN(instant)) return undefined
  const wall = master.isDate ? instant : master.clock.wallAt(instant)
  for (const source of occurrencesIn(series, { from: wall, to: wall }, { steps })) {
    for (const occurrence of source) {
      if (keyOf(occurrence.wall, master) === key) return instanceAt(series, master, occurrence)
    }
  }
  return undefined
}

interface Occurrence {
  wall: number
  /** where the time was given with an end of its own */
  end?: number | undefined
}

/** Where the times of a series come from: its beginning, the extra ones, and each of its rules, which go in order. */
function* occurrencesIn(series: Series, window: Window, budget: Budget): Generator<Iterable<Occurrence>> {
  const { master } = series
  if (!master) return
  const { wall, isDate, clock, component } = master
  const isNear = (occurrence: Occurrence) => occurrence.wall >= window.from && occurrence.wall <= window.to
  yield [{ wall }].filter(isNear)
  yield series.extra
    .map(extra => {
      if (isDate) return { wall: Math.floor(extra.wall / dayMs) * dayMs }
      // Of an event with hours an extra day has the same hours.
      if (extra.isDate) return { wall: extra.wall + (((wall % dayMs) + dayMs) % dayMs) }
      return { wall: clock.wallAt(extra.instant), end: extra.end }
    })
    .filter(isNear)
  for (const property of component.getAllProperties('rrule')) {
    const rule = property.getFirstValue()
    if (rule instanceof ICAL.Recur) yield walls(timesOf(rule, master, window, budget))
  }
}

function* walls(times: Iterable<number>): Generator<Occurrence> {
  for (const wall of times) yield { wall }
}

/** What takes place at one of the series' own times; undefined: nothing, or what is said of that time alone. */
function instanceAt(series: Series, master: Part, { wall, end }: Occurrence): Instance | undefined {
  const key = keyOf(wall, master)
  if (series.isExcluded(wall) || series.overrides.some(override => override.key === key)) return undefined
  const instant = master.clock.instantAt(wall)
  const later = series.overrides
    .filter(({ isForAllLater, instead }) => isForAllLater && instead.instant <= instant)
    .sort((one, other) => other.instead.instant - one.instead.instant)[0]
  if (later?.isCancelled) return undefined
  if (later) return describe(later, (later.isDate ? wall : later.clock.wallAt(instant)) + shiftOf(later), key)
  return describe(master, wall, isSeries(series) ? key : undefined, end)
}

const isSeries = ({ master, overrides }: Series): boolean =>
  overrides.length > 0 ||
  master?.component.hasProperty('rrule') === true ||
  master?.component.hasProperty('rdate') === true

const overridden = (series: Series, override: Override): Instance | undefined =>
  override.isCancelled || (series.master && series.isExcluded(insteadOf(series.master, override)))
    ? undefined
    : describe(override, override.wall, override.key)

/** The time that is changed, on the clock of the whole series. */
const insteadOf = (master: Part, { instead }: Override): number =>
  master.isDate ? instead.wall : master.clock.wallAt(instead.instant)

/** How much later on its clock it begins than the time it is said of. */
const shiftOf = ({ wall, isDate, clock, instead }: Override): number =>
  wall - (isDate ? instead.wall : clock.wallAt(instead.instant))

const isThere = (instance: Instance | undefined): instance is Instance => instance !== undefined

function describe(part: Part, wall: number, key: string | undefined, end?: number): Instance {
  const { component, clock, isDate, unknownZone } = part
  const said = (name: string): string | undefined => {
    const value = component.getFirstPropertyValue(name)
    return typeof value === 'string' && value.trim() !== '' ? value : undefined
  }
  const ending = end ?? part.endOf(wall)
  return {
    key,
    start: clock.instantAt(wall),
    end: ending,
    days: isDate ? { first: wall, end: Math.floor(clock.wallAt(ending) / dayMs) * dayMs } : undefined,
    title: said('summary') ?? '',
    location: said('location'),
    description: said('description'),
    isTentative: said('status')?.toUpperCase() === 'TENTATIVE',
    unknownZone,
  }
}
