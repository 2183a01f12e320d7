/** What comes again and again. The date library knows nothing of that, so these few forms are read here. */
type Recurring = { type: 'interval'; ms: number } | { type: 'cron'; expression: string } | { problem: string }

interface FoundRecurrence {
  when: Recurring
  rest: string
  index: number
}

const units: Record<string, number> = {
  second: 1000,
  sec: 1000,
  minute: 60_000,
  min: 60_000,
  hour: 3_600_000,
  hr: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  fortnight: 1_209_600_000,
}
const adverbs: Record<string, string> = {
  hourly: 'every hour',
  daily: 'every day',
  weekly: 'every week',
  monthly: 'every month',
}
const days = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const partsOfDay: Record<string, number> = {
  morning: 9,
  noon: 12,
  afternoon: 15,
  evening: 20,
  night: 22,
  midnight: 0,
}

const part = Object.keys(partsOfDay).join('|')
const dayName = '(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(?:day)?'
const list = (one: string) => `${one}(?:(?:\\s*,\\s*(?:and\\s+)?|\\s+and\\s+|\\s*&\\s*)(?:on\\s+)?${one})*`
const clock = String.raw`(?:at|@)\s*(?:noon|midnight|\d{1,2}(?:[:.]\d\d)?(?:\s*[ap]\.?m\b\.?)?)|\d{1,2}:\d\d(?:\s*[ap]m\b)?|\d{1,2}\s*[ap]m\b`

const everyUnit =
  /\b(?:every|each)\s+(other\s+|\d+(?:\.\d+)?\s+)?(second|sec|minute|min|hour|hr|day|week|fortnight|month)s?\b/i
const everyDays = new RegExp(
  String.raw`\b(?:(?:every|each)\s+(?:single\s+)?(${list(`(?:${dayName})s?`)}|weekdays?|work(?:ing )?days?|weekends?|${part})|(?:on\s+)?(${list(`${dayName.replace('(?:day)?', 'days')}`)}|weekdays|workdays|weekends))(?:\s+(${part}))?\b`,
  'i',
)
const onDate = String.raw`on\s+the\s+(\d{1,2})(?:st|nd|rd|th)?|on\s+the\s+last\s+day`

export function findRecurrence(sentence: string, wall: number): FoundRecurrence | undefined {
  const text = sentence.replace(
    /\b(hourly|daily|weekly|monthly)\b/i,
    word => adverbs[word.toLowerCase()] ?? word,
  )
  const monthly = findMonthly(text, wall)
  if (monthly) return monthly
  const named = everyDays.exec(text)
  if (named) return onNamedDays(text, named)
  const every = everyUnit.exec(text)
  return every ? everySoOften(text, every, wall) : undefined
}

function everySoOften(text: string, match: RegExpExecArray, wall: number): FoundRecurrence {
  const [phrase, count = '', unitName = ''] = match
  const unit = unitName.toLowerCase()
  const times = count === '' ? 1 : /other/i.test(count) ? 2 : Number(count)
  const onDay = unit === 'week' ? weekday(text, match) : undefined
  const around = takeClock(text, match.index, onDay?.end ?? match.index + phrase.length)
  const found = (when: Recurring): FoundRecurrence =>
    refuseEnd({ when, rest: around.rest, index: around.index })
  if (times === 1 && (unit === 'day' || unit === 'week')) {
    const on = unit === 'day' ? '*' : String(onDay?.day ?? new Date(wall).getUTCDay())
    return found(atClock(around.clock, `* * ${on}`))
  }
  const ms = times * (units[unit] ?? Number.NaN)
  if (around.clock !== undefined || onDay) {
    return found({
      problem: `I can repeat something every ${times} ${unit}s from now on, or at a set hour on days of the week, but not both.`,
    })
  }
  if (!(ms >= 1000) || ms > 365 * 86_400_000) {
    return found({ problem: 'I can repeat something every second at most, and once a year at least.' })
  }
  return found({ type: 'interval', ms: Math.round(ms) })
}

/** “every week on friday” */
function weekday(text: string, match: RegExpExecArray): { day: number; end: number } | undefined {
  const from = match.index + match[0].length
  const next = new RegExp(String.raw`^\s+on\s+(${dayName})s?\b`, 'i').exec(text.slice(from))
  return next ? { day: dayNumber(next[1] ?? ''), end: from + next[0].length } : undefined
}

function onNamedDays(text: string, match: RegExpExecArray): FoundRecurrence {
  const [phrase, every, plural, partOfDay] = match
  const which = (every ?? plural ?? '').toLowerCase()
  const around = takeClock(text, match.index, match.index + phrase.length)
  const hour = partsOfDay[partOfDay?.toLowerCase() ?? which]
  const when = atClock(
    around.clock ?? (hour === undefined ? undefined : { hour, minute: 0 }),
    `* * ${daysOf(which)}`,
  )
  return refuseEnd({ when, rest: around.rest, index: around.index })
}

function daysOf(which: string): string {
  if (/^week(?:day)/.test(which) || which.startsWith('work')) return '1-5'
  if (which.startsWith('weekend')) return '0,6'
  if (Object.hasOwn(partsOfDay, which)) return '*'
  const numbers = which.match(new RegExp(dayName, 'g'))?.map(dayNumber) ?? []
  return [...new Set(numbers)].sort().join(',')
}

const dayNumber = (name: string): number =>
  days.findIndex(day => day.startsWith(name.toLowerCase().slice(0, 3)))

function findMonthly(text: string, wall: number): FoundRecurrence | undefined {
  const match =
    new RegExp(String.raw`\b(?:${onDate})\s+of\s+(?:every|each|the)\s+month\b`, 'i').exec(text) ??
    new RegExp(String.raw`\b(?:every|each)\s+month(?:\s+(?:${onDate}))?\b`, 'i').exec(text)
  if (!match) return undefined
  const around = takeClock(text, match.index, match.index + match[0].length)
  const today = new Date(wall).getUTCDate()
  const date = /last/i.test(match[0]) ? 'L' : String(match[1] ?? today)
  const when: Recurring =
    Number(date) > 31 || date === '0'
      ? { problem: 'No month has such a day.' }
      : atClock(around.clock, `${date} * *`)
  return refuseEnd({ when, rest: around.rest, index: around.index })
}

type Clock = { hour: number; minute: number }

const atClock = (clock: Clock | undefined, days: string): Recurring => {
  const { hour, minute } = clock ?? { hour: 9, minute: 0 }
  return hour > 23 || minute > 59
    ? { problem: 'There is no such time of day.' }
    : { type: 'cron', expression: `${minute} ${hour} ${days}` }
}

/** The time of day stands right after the phrase, right before it, or at the end of the sentence. */
function takeClock(
  text: string,
  from: number,
  to: number,
): { clock: Clock | undefined; rest: string; index: number } {
  const before = text.slice(0, from)
  const after = text.slice(to)
  const places: [RegExp, 'before' | 'after'][] = [
    [new RegExp(String.raw`^\s*,?\s*(${clock})`, 'i'), 'after'],
    [new RegExp(String.raw`(${clock})\s*,?\s*$`, 'i'), 'before'],
    [/\b(at\s+(?:noon|midnight|\d{1,2}(?:[:.]\d\d)?(?:\s*[ap]m)?))$/i, 'after'],
  ]
  const joined = (a: string, b: string) => `${a.trim()} ${b.trim()}`.replace(/\s+/g, ' ').trim()
  for (const [pattern, side] of places) {
    const match = pattern.exec(side === 'before' ? before : after)
    if (!match) continue
    const clock = readClock(match[1] ?? '')
    if (side === 'before') {
      return { clock, rest: joined(before.slice(0, match.index), after), index: match.index }
    }
    const left = after.slice(0, match.index) + after.slice(match.index + match[0].length)
    return { clock, rest: joined(before, left), index: from }
  }
  return { clock: undefined, rest: joined(before, after), index: from }
}

function readClock(text: string): Clock {
  const word = /noon|midnight/i.exec(text)?.[0].toLowerCase()
  if (word !== undefined) return { hour: word === 'noon' ? 12 : 0, minute: 0 }
  const [, hours = '', minutes = '0', half] = /(\d{1,2})(?:[:.](\d\d))?\s*(?:([ap])\.?m)?/i.exec(text) ?? []
  const hour = Number(hours)
  if (half === undefined) return { hour, minute: Number(minutes) }
  if (hour > 12) return { hour: 24, minute: 0 }
  return { hour: (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0), minute: Number(minutes) }
}

const refuseEnd = (found: FoundRecurrence): FoundRecurrence =>
  /\b(?:until|till)\s+(?:\d|noon|midnight|tomorrow|tonight|next|mon|tue|wed|thu|fri|sat|sun)/i.test(
    found.rest,
  )
    ? {
        ...found,
        when: {
          problem: 'I cannot end a repetition by itself. Leave out “until”, and cancel it when it is enough.',
        },
      }
    : found
