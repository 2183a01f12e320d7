const two = (value: number) => String(value).padStart(2, '0')
const hoursAndMinutes = (time: Date) => `${two(time.getHours())}:${two(time.getMinutes())}`

/** Local time to the second; the JSON has the exact instant. */
export function when(iso: string | null): string {
  if (iso === null) return '-'
  const date = new Date(iso)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${hoursAndMinutes(date)}:${two(date.getSeconds())}`
}

/** Local time of day to the minute. */
export const timeOfDay = (iso: string): string => hoursAndMinutes(new Date(iso))

/** Local time of day to the millisecond. */
export function clock(iso: string): string {
  const time = new Date(iso)
  return `${hoursAndMinutes(time)}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, '0')}`
}

/** `when` without the year and the seconds. */
const briefTime = (time: string): string => (time.length > 16 ? time.slice(5, 16) : time)

/** A column with a time. */
export const timeColumn = <T>(title: string, iso: (row: T) => string | null) => ({
  title,
  value: (row: T) => when(iso(row)),
  brief: briefTime,
})

/** The start of a run's id; `runs show` accepts it. */
export const briefId = (id: string): string => id.slice(0, 8)

export const milliseconds = (us: number): string => `${(us / 1000).toFixed(1)} ms`

/** How long something took that has started and ended. */
export const duration = (run: { started_at: string | null; ended_at: string | null }): string =>
  run.started_at === null || run.ended_at === null
    ? '-'
    : `${((Date.parse(run.ended_at) - Date.parse(run.started_at)) / 1000).toFixed(1)} s`

const units = ['kB', 'MB', 'GB']

export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`
  let size = count
  let unit = -1
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** What waits for people or for delivery, such as `2 approvals, 1 message`. */
export const waitingItems = (
  waiting: Readonly<Record<'approvals' | 'questions' | 'requests' | 'messages' | 'deploys', number>>,
): string =>
  (['approval', 'question', 'request', 'message', 'deploy'] as const)
    .flatMap(noun => (waiting[`${noun}s`] === 0 ? [] : [plural(waiting[`${noun}s`], noun)]))
    .join(', ')
