/**
 * What a clock on the wall shows is kept as milliseconds as if the wall hung in Greenwich, so that one can count with it.
 */
const formats = new Map<string, Intl.DateTimeFormat>()

const formatOf = (zone: string): Intl.DateTimeFormat => {
  const known = formats.get(zone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(zone, format)
  return format
}

export function wallOf(instant: number, zone: string): number {
  const part: Record<string, number> = {}
  for (const { type, value } of formatOf(zone).formatToParts(instant)) part[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  const milliseconds = ((instant % 1000) + 1000) % 1000
  return Date.UTC(year, month - 1, day, hour, minute, second, milliseconds)
}

const day = 86_400_000

/** The first instant at which the wall shows this; where the clock jumps over it, as long after the jump. */
export function instantOf(wall: number, zone: string): number {
  const offsetAt = (instant: number) => wallOf(instant, zone) - instant
  const before = wall - offsetAt(wall - day)
  const after = wall - offsetAt(wall + day)
  const shown = [before, after].filter(instant => wallOf(instant, zone) === wall)
  return shown.length > 0 ? Math.min(...shown) : before
}

/** The day so many days from now, as people there write it: `2030-01-31`. */
export const dayIn = (now: Date, zone: string, ahead: number): string =>
  new Date(wallOf(now.getTime(), zone) + ahead * day).toISOString().slice(0, 10)
