import { InvalidArgumentError } from 'commander'
import { usageError } from './failure.ts'
import { parsed, text, type ValuesOf } from './inputs.ts'

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time span such as 30s, 10m, 2h or 7d in milliseconds; undefined: it is not one. */
export function spanMs(given: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,7})([smhd])$/.exec(given) ?? []
  return count === undefined ? undefined : Number(count) * (unitMs[unit] ?? 0)
}

const interval = (given: string): string => {
  const ms = spanMs(given)
  if (!ms) throw new InvalidArgumentError('Write it as 30s, 10m, 2h or 1d.')
  return String(ms)
}

/** When a task or a job runs; one of the first three. */
export const scheduleInputs = {
  cron: text('expression', 'run by a cron expression'),
  every: parsed('time', 'run at an interval such as 30s, 10m, 2h, 1d', interval),
  at: text('time', 'run once, at a time in ISO 8601'),
  zone: text('name', 'the time zone of the schedule (default: the group’s, or else the configured one)'),
}

export interface Schedule {
  schedule_type: string
  schedule_value: string
}

/** The schedule that was given, if any. */
export function givenSchedule({
  cron,
  every,
  at,
}: Omit<ValuesOf<typeof scheduleInputs>, 'zone'>): Schedule | undefined {
  const [schedule, ...others] = Object.entries({ cron, interval: every, once: at }).flatMap(
    ([schedule_type, schedule_value]) =>
      schedule_value === undefined ? [] : [{ schedule_type, schedule_value }],
  )
  if (others.length > 0) throw usageError('Use only one of --cron, --every and --at.')
  return schedule
}

export function requiredSchedule(given: ValuesOf<typeof scheduleInputs>): Schedule {
  const schedule = givenSchedule(given)
  if (!schedule) throw usageError('Say when it runs, with --cron, --every or --at.')
  return schedule
}

const spans = [
  { ms: 86_400_000, name: 'd' },
  { ms: 3_600_000, name: 'h' },
  { ms: 60_000, name: 'min' },
  { ms: 1000, name: 's' },
  { ms: 1, name: 'ms' },
] as const

/** For people, and not rounded; the JSON has the stored value. */
export function scheduleInWords({ schedule_type, schedule_value }: Schedule): string {
  let rest = Number(schedule_value)
  if (schedule_type !== 'interval' || !Number.isSafeInteger(rest) || rest <= 0)
    return `${schedule_type} ${schedule_value}`
  const parts: string[] = []
  for (const { ms, name } of spans) {
    if (rest >= ms) parts.push(`${Math.floor(rest / ms)} ${name}`)
    rest %= ms
  }
  return `every ${parts.join(' ')}`
}
