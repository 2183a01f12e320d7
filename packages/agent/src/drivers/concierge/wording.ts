import type { CalendarEvent, ListedTask } from './tools.ts'
import type { When } from './when.ts'
import { dayIn } from './zone.ts'

/** The sentences the concierge speaks. */
const mark = 'Remind: '

/** A reminder is stored as a prompt that any agent would understand, and is read back from it. */
export const promptFor = (text: string): string => mark + (text || 'the time you asked for has come')
export const reminderIn = (prompt: string): string =>
  `⏰ Reminder: ${prompt.startsWith(mark) ? prompt.slice(mark.length) : prompt}`
export const subjectOfPrompt = (prompt: string): string =>
  prompt.startsWith(mark) ? prompt.slice(mark.length) : prompt

export function scheduleOf(when: When): { schedule_type: When['type']; schedule_value: string } {
  if (when.type === 'once') return { schedule_type: 'once', schedule_value: when.at.toISOString() }
  if (when.type === 'interval') return { schedule_type: 'interval', schedule_value: String(when.ms) }
  return { schedule_type: 'cron', schedule_value: when.expression }
}

export function moment(instant: Date, zone: string, now: Date): string {
  const show = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { timeZone: zone, ...options })
  const dayOf = (date: Date) => show({ dateStyle: 'short' }).format(date)
  const soon = instant.getTime() - now.getTime() < 600_000
  const clock = show({
    hour: '2-digit',
    minute: '2-digit',
    ...(soon ? { second: '2-digit' } : {}),
  }).format(instant)
  if (dayOf(instant) === dayOf(now)) return `today at ${clock}`
  if (dayOf(instant) === dayOf(new Date(now.getTime() + 86_400_000))) return `tomorrow at ${clock}`
  const sameYear = show({ year: 'numeric' }).format(instant) === show({ year: 'numeric' }).format(now)
  const date = show({
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    ...(sameYear ? {} : { year: 'numeric' }),
  })
  return `on ${date.format(instant)} at ${clock}`
}

const span = [
  ['week', 604_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const

function every(ms: number): string {
  const [unit, size] = span.find(([, size]) => ms >= size && ms % size === 0) ?? ['second', 1000]
  const count = ms / size
  return count === 1 ? `every ${unit}` : `every ${count} ${unit}s`
}

const dayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/** A cron expression of the kind the concierge writes, in words; others are shown as they are. */
function cronInWords(expression: string): string {
  const match = /^(\d{1,2}) (\d{1,2}) (\*|L|\d{1,2}) \* (\*|[\d,]+|1-5)$/.exec(expression)
  if (!match) return `at “${expression}”`
  const [, minute = '', hour = '', date = '', days = ''] = match
  const clock = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  if (date === 'L') return `on the last day of every month at ${clock}`
  if (date !== '*') return `on day ${date} of every month at ${clock}`
  if (days === '*') return `every day at ${clock}`
  if (days === '1-5') return `every weekday at ${clock}`
  const names = days.split(',').map(day => dayNames[Number(day) % 7] ?? day)
  return `every ${inWords(names)} at ${clock}`
}

export const inWords = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`

export function whenInWords(when: When, zone: string, now: Date): string {
  if (when.type === 'once') return moment(when.at, zone, now)
  return when.type === 'interval' ? every(when.ms) : cronInWords(when.expression)
}

export const taskLine = (task: ListedTask, zone: string, now: Date, ownGroup: string): string =>
  `${task.id}. ${aboutTask(task, zone, now, ownGroup)}`

export function aboutTask(task: ListedTask, zone: string, now: Date, ownGroup: string): string {
  const schedule =
    task.schedule_type === 'cron'
      ? cronInWords(task.schedule_value)
      : task.schedule_type === 'interval'
        ? every(Number(task.schedule_value))
        : undefined
  const next = task.next_run === undefined ? undefined : moment(new Date(task.next_run), zone, now)
  const times = [
    schedule,
    task.status === 'paused' ? 'paused' : next === undefined ? undefined : schedule ? `next ${next}` : next,
  ].filter(part => part !== undefined)
  const group = task.group === ownGroup ? '' : ` [${task.group}]`
  return `${shortened(subjectOfPrompt(task.prompt))}${group} (${times.join('; ')})`
}

export const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, ' ')
  return line.length > 80 ? `${line.slice(0, 79)}…` : line
}

/** “tomorrow, 09:00–10:30: Dentist” */
export function eventLine({ title, start, end, all_day }: CalendarEvent, zone: string, now: Date): string {
  const name = title || 'without a title'
  const isDay = all_day || /^\d{4}-\d\d-\d\d$/.test(start)
  const begins = new Date(start)
  if (Number.isNaN(begins.getTime())) return `${start}: ${name}`
  const day = dayWord(isDay ? start.slice(0, 10) : dayIn(begins, zone, 0), zone, now)
  if (isDay) {
    const last = end?.slice(0, 10) ?? ''
    return last > start.slice(0, 10)
      ? `${day} to ${dayWord(last, zone, now)}, all day: ${name}`
      : `${day}, all day: ${name}`
  }
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' })
  const ends = new Date(end ?? '')
  const until = Number.isNaN(ends.getTime()) ? '' : `–${clock.format(ends)}`
  return `${day}, ${clock.format(begins)}${until}: ${name}`
}

function dayWord(date: string, zone: string, now: Date): string {
  if (date === dayIn(now, zone, 0)) return 'today'
  if (date === dayIn(now, zone, 1)) return 'tomorrow'
  const show = { timeZone: 'UTC', weekday: 'long', day: 'numeric', month: 'long' } as const
  return new Intl.DateTimeFormat('en-GB', show).format(new Date(`${date}T00:00:00Z`))
}

/** What is not offered here is not spoken of. */
export const explanation = (assistant: string, offered: ReadonlySet<string>): string => {
  const lines = [
    `I’m ${assistant}. There is no language model behind me; I keep reminders and schedules. Write to me like this:`,
    '• remind me in ten seconds to stretch',
    '• remind me tomorrow at 9 to call Ann',
    '• every weekday at 9 remind me of the stand-up',
    '• every 5 minutes remind me to drink water',
    '• what are my reminders?',
    '• pause task 3 · resume task 3 · cancel task 3',
    '• change task 3 to friday at 17:00 · change task 3 to say water the plants',
  ]
  if (offered.has('save_memory')) {
    lines.push('• remember that the spare key is with Ann · what do you remember about the key? · forget …')
  }
  if (offered.has('add_todo')) lines.push('• add milk to my list · what is on my list? · done milk')
  if (offered.has('list_calendar')) lines.push('• what is on my calendar today? · … tomorrow? · … this week?')
  return lines.join('\n')
}
