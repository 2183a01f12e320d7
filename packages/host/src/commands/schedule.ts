import type { Task } from '@hatchway/protocol'
import { badSchedule, type NextRun, nextCron } from '../base/cron.ts'
import { instantOf, resolveZone } from '../base/time-zone.ts'

export type Schedule = Pick<Task, 'schedule_type' | 'schedule_value' | 'timezone'>

/** The one place that says when a task runs next: always later than `after`, or a reason why never. */
export const nextRun = ({ schedule_type, schedule_value, timezone }: Schedule, after: Date): NextRun => {
  const zone = resolveZone(timezone)
  if (zone === undefined)
    return badSchedule('The timezone is not the name of one, such as Europe/Berlin or UTC.')
  const next =
    schedule_type === 'cron'
      ? nextCron(schedule_value, zone, after)
      : schedule_type === 'interval'
        ? nextInterval(schedule_value, after)
        : nextOnce(schedule_value, zone, after)
  return next.ok && next.at.getTime() > lastInstant
    ? badSchedule('The schedule lies beyond the year 9999.')
    : next
}

const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

const shortest = 1000
const longest = 365 * 86_400_000

const nextInterval = (value: string, after: Date): NextRun => {
  const milliseconds = /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (milliseconds >= shortest && milliseconds <= longest) {
    return { ok: true, at: new Date(after.getTime() + milliseconds) }
  }
  return badSchedule(
    `An interval is a whole number of milliseconds in digits only, from ${shortest} (a second) to ${longest} (a year).`,
  )
}

const isoTime =
  /^(?<date>\d{4}-\d\d-\d\d)T(?<minute>\d\d:\d\d)(?::(?<second>\d\d)(?<fraction>\.\d{1,9})?)?(?<offset>Z|[+-]\d\d:\d\d)?$/

const nextOnce = (value: string, zone: string, after: Date): NextRun => {
  const groups = isoTime.exec(value)?.groups
  if (!groups) {
    return badSchedule(
      'A time is written in ISO 8601 with date and time, such as 2030-01-31T09:00:00 in the zone of the task, or with Z or an offset such as +01:00 behind it.',
    )
  }
  const { date, minute, second = '00', fraction = '', offset } = groups
  const local = `${date}T${minute}:${second}`
  const wall = new Date(`${local}Z`)
  // Where the calendar ends early the runtime counts on into the next month; what comes back must be what was asked.
  if (Number.isNaN(wall.getTime()) || wall.toISOString().slice(0, 19) !== local) {
    return badSchedule('There is no such date or time of day.')
  }
  const milliseconds = Math.floor(Number(`0${fraction}`) * 1000)
  const instant =
    offset === undefined
      ? instantOf(
          {
            year: wall.getUTCFullYear(),
            month: wall.getUTCMonth(),
            day: wall.getUTCDate(),
            hour: wall.getUTCHours(),
            minute: wall.getUTCMinutes(),
            second: wall.getUTCSeconds(),
          },
          zone,
        )
      : Date.parse(local + offset)
  if (Number.isNaN(instant)) return badSchedule('There is no such offset from UTC; one is written as +01:00.')
  const at = new Date(instant + milliseconds)
  return at > after
    ? { ok: true, at }
    : badSchedule('The time has passed. Give one in the future as schedule_value.')
}
