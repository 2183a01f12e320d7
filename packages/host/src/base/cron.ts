import { type Refusal, refusal } from '@hatchway/protocol'
import { Cron, CronPattern } from 'croner'
import { clockChange, goesBack, reading, wallTime } from './time-zone.ts'

export type NextRun = { ok: true; at: Date } | { ok: false; error: Refusal }

export const badSchedule = (message: string): NextRun => ({
  ok: false,
  error: refusal('bad_schedule', message),
})

const range = String.raw`\*|\?|\d{1,2}(-\d{1,2})?|(\*|\d{1,2}-\d{1,2})/\d{1,2}`
const month = '(JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)'
const weekday = '([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)'
const entry = (pattern: string) => new RegExp(`^(${pattern})$`, 'i')

/**
 * What each field may hold, more strictly than croner, which reads `5*` as 5 and `JANFEB` as December: a schedule
 * that was not meant must not run.
 */
const fields = [
  { name: 'second', entry: entry(range), takes: '0-59' },
  { name: 'minute', entry: entry(range), takes: '0-59' },
  { name: 'hour', entry: entry(range), takes: '0-23' },
  {
    name: 'day of month',
    entry: entry(String.raw`${range}|L|LW|\d{1,2}W`),
    takes: '1-31, L (the last day), LW or 15W (the nearest weekday)',
  },
  { name: 'month', entry: entry(`${range}|${month}(-${month})?`), takes: '1-12 or JAN-DEC' },
  {
    name: 'day of week',
    entry: entry(String.raw`\+?(${range}|${weekday}(-${weekday})?(#[1-5L]|L)?)`),
    takes: '0-7 or SUN-SAT, FRI#2 (the second Friday), FRI#L (the last)',
  },
] as const

const shape = 'five fields (minute, hour, day of month, month, day of week), or six with seconds first'
const nickname = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i
const maxLength = 256

/** The expression's six fields, or what is wrong with it. */
const parse = (expression: string): readonly string[] | NextRun => {
  if (expression.length > maxLength) {
    return badSchedule(`A cron expression has at most ${maxLength} characters.`)
  }
  const trimmed = expression.trim()
  const parts = (nickname.test(trimmed) ? new CronPattern(trimmed).pattern : trimmed).split(/[ \t]+/)
  if (parts.length === fields.length - 1) parts.unshift('0')
  if (parts.length !== fields.length) {
    return badSchedule(`A cron expression has ${shape}, such as "0 9 * * 1-5", or is a name such as @daily.`)
  }
  const wrong = fields.find(({ entry }, index) => !parts[index]?.split(',').every(one => entry.test(one)))
  return wrong ? badField(wrong) : parts
}

const badField = ({ name, takes }: (typeof fields)[number]): NextRun =>
  badSchedule(`The cron expression's ${name} takes ${takes}, *, lists, ranges, or steps such as */5.`)

const compile = (text: string): CronPattern | undefined => {
  try {
    return new CronPattern(text)
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined
    throw error
  }
}

/** Which field holds a number that is not in its range: croner's own words count some of them from 0. */
const outOfRange = (parts: readonly string[]): NextRun => {
  const alone = (index: number) => parts.map((part, other) => (other === index ? part : '*')).join(' ')
  const wrong = fields.find((_, index) => !compile(alone(index)))
  return wrong ? badField(wrong) : badSchedule(`A cron expression has ${shape}.`)
}

/** The longest the calendar keeps a date waiting: 29 February on a given weekday, across 2100. */
const horizonYears = 40
/** Clock changes a search passes over: one that meets more of them runs into every one there is. */
const maxClockChanges = 10

/**
 * The first time after `after` that the expression matches, by croner's rules for clock changes: a fixed time that
 * the clock jumps over runs right after the jump, one that comes twice runs the first time; anything that repeats
 * within the day skips what the clock skips and runs in both passes of a repeated hour.
 *
 * Asked directly, croner walks through a skipped hour match by match and through the calendar for 400 years:
 * `* * 2 * 3 SUN#L`, which in Berlin matches nothing but skipped seconds, kept it busy for 55 s. So the years are
 * given to it, and it is asked only once the next match is known to be on the clock.
 */
export const nextCron = (expression: string, zone: string, after: Date): NextRun => {
  const parts = parse(expression)
  if ('ok' in parts) return parts
  const { year } = wallTime(after.getTime(), zone)
  const text = `${parts.join(' ')} ${year}-${Math.min(year + horizonYears, 9999)}`
  const pattern = compile(text)
  if (!pattern) return outOfRange(parts)

  let from = after.getTime()
  for (let changes = 0; changes < maxClockChanges; changes++) {
    const match = wallTime(from, zone).increment(pattern, {}, false)
    if (!match) break
    const instant = match.getTime()
    const skipped = reading(wallTime(instant, zone)) - reading(match)
    if (skipped === 0 || pattern.isFixedTime) {
      const at = new Cron(text, { timezone: zone }).nextRun(new Date(from))
      if (!at) break
      return { ok: true, at }
    }
    const change = goesBack(from, zone) ?? clockChange(instant - skipped, instant, zone)
    if (wallTime(change, zone).match(pattern, {})) return { ok: true, at: new Date(change) }
    from = change
  }
  return badSchedule(
    `The cron expression matches no time that a clock in its zone shows in the next ${horizonYears} years.`,
  )
}
