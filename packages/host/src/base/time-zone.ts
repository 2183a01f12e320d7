import { CronDate } from 'croner'

/** Offsets such as `+01:00` are not zones here: a zone is a name with rules, so that summer time is kept. */
const zoneName = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/

/** Names are hostile and come in any case; what is remembered of them stays small. */
const maxRemembered = 1024
const remembered = new Map<string, string>()

/**
 * The zone under the one name the runtime knows it by, or undefined if there is none. Calculations use that name:
 * croner keeps a formatter for every spelling it has ever seen.
 */
export const resolveZone = (name: string): string | undefined => {
  const seen = remembered.get(name)
  if (seen !== undefined) return seen
  if (!zoneName.test(name)) return undefined
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions()
    if (remembered.size >= maxRemembered) remembered.clear()
    remembered.set(name, timeZone)
    return timeZone
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** What a clock on the wall shows. `month` counts from 0. */
type WallTime = Pick<CronDate, 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second'>

export const wallTime = (instant: number, zone: string): CronDate => new CronDate(new Date(instant), zone)

/** The wall time as if it were UTC, to measure how far apart two readings of a clock are. */
export const reading = ({ year, month, day, hour, minute, second }: WallTime): number =>
  Date.UTC(year, month, day, hour, minute, second)

/**
 * The instant a clock in the zone shows this. A time that comes twice is the first of the two; one that the clock
 * jumps over is as much later as the jump is long.
 */
export const instantOf = (wall: WallTime, zone: string): number =>
  Object.assign(wallTime(0, zone), wall).getTime()

const offset = (instant: number, zone: string): number => reading(wallTime(instant, zone)) - instant

/** The second at which the zone's offset stops being what it is at `from`; it has changed once by `to`. */
export const clockChange = (from: number, to: number, zone: string): number => {
  const before = offset(from, zone)
  let [low, high] = [from, to]
  while (high - low > 1000) {
    const middle = low + Math.floor((high - low) / 2000) * 1000
    if (offset(middle, zone) === before) low = middle
    else high = middle
  }
  return high
}

/** No clock goes back by more than this. */
const longestRepeat = 3 * 3_600_000

/** If the clock will show this instant's wall time once more: when it goes back. */
export const goesBack = (instant: number, zone: string): number | undefined => {
  const from = Math.floor(instant / 1000) * 1000
  const to = from + longestRepeat
  if (offset(to, zone) >= offset(from, zone)) return undefined
  const change = clockChange(from, to, zone)
  return reading(wallTime(change, zone)) <= reading(wallTime(from, zone)) ? change : undefined
}
