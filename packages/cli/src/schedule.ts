import { type Command, InvalidArgumentError } from 'commander'

/** How people say on a command line when something runs: the same for tasks and for jobs. */
export interface ScheduleOptions {
  cron?: string
  every?: string
  at?: string
  zone?: string
}

export interface Schedule {
  schedule_type: string
  schedule_value: string
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const interval = (text: string): string => {
  const [, count, unit = ''] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? []
  if (count === undefined) throw new InvalidArgumentError('Write it as 30s, 10m, 2h or 1d.')
  return String(Number(count) * (units[unit] ?? 0))
}

export const withSchedule = (command: Command): Command =>
  command
    .option('--cron <expression>', 'when: a cron expression')
    .option('--every <time>', 'when: at intervals such as 30s, 10m, 2h, 1d', interval)
    .option('--at <time>', 'when: once, in ISO 8601')

/** The one way to say when that was used, if any was. More than one is a mistake of the command line. */
export function givenSchedule({ cron, every, at }: ScheduleOptions, command: Command): Schedule | undefined {
  const [schedule, ...others] = [
    { schedule_type: 'cron', schedule_value: cron },
    { schedule_type: 'interval', schedule_value: every },
    { schedule_type: 'once', schedule_value: at },
  ].flatMap(({ schedule_type, schedule_value }) =>
    schedule_value === undefined ? [] : [{ schedule_type, schedule_value }],
  )
  return others.length > 0 ? unclear(command) : schedule
}

export const neededSchedule = (options: ScheduleOptions, command: Command): Schedule =>
  givenSchedule(options, command) ?? unclear(command)

/** Ends with the way to help, as every mistake of the command line does. */
const unclear = (command: Command): never =>
  command.error('error: One of --cron, --every and --at says when it runs.')

const spans = [
  { ms: 86_400_000, name: 'd' },
  { ms: 3_600_000, name: 'h' },
  { ms: 60_000, name: 'min' },
  { ms: 1000, name: 's' },
] as const

/** For people; JSON has it as it is stored. Nothing is rounded: what does not come out even stays milliseconds. */
export function scheduleInWords({ schedule_type, schedule_value }: Schedule): string {
  if (schedule_type !== 'interval') return `${schedule_type} ${schedule_value}`
  const parts: string[] = []
  let rest = Number(schedule_value)
  if (!Number.isSafeInteger(rest) || rest <= 0) return `${schedule_type} ${schedule_value}`
  for (const { ms, name } of spans) {
    if (rest >= ms) parts.push(`${Math.floor(rest / ms)} ${name}`)
    rest %= ms
  }
  if (rest > 0) parts.push(`${rest} ms`)
  return `every ${parts.join(' ')}`
}
