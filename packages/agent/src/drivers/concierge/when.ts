import { casual, type ParsedResult } from 'chrono-node/en'
import { withDigits } from './numbers.ts'
import { findRecurrence } from './recurrence.ts'
import { instantOf, wallOf } from './zone.ts'

export type When =
  | { type: 'once'; at: Date }
  | { type: 'interval'; ms: number }
  | { type: 'cron'; expression: string }

export interface FoundWhen {
  when: When | { problem: string }
  /** the text without the words that told the time */
  rest: string
  /** the time stood at the very beginning */
  first: boolean
}

const morning = 9

/** The time or schedule a sentence names; undefined: none. */
export function findWhen(sentence: string, now: Date, zone: string): FoundWhen | undefined {
  const wall = wallOf(now.getTime(), zone)
  const text = withDayOfMonth(withDigits(sentence), wall)
  const recurrence = findRecurrence(text, wall)
  if (recurrence) return { ...recurrence, first: recurrence.index === 0 }

  const results = inGreenwich(() =>
    casual.parse(text, { instant: new Date(wall), timezone: 0 }, { forwardDate: true }),
  )
  const result = chosen(results, text)
  if (!result) return undefined
  const at = instantFor(result, wall, now.getTime(), zone)
  const before = text.slice(0, result.index)
  return {
    when:
      at > now.getTime()
        ? { type: 'once', at: new Date(at) }
        : { problem: 'That time has passed. Tell me one that is still to come.' },
    rest: join(
      before.replace(/\b(?:in the|at|on|by)\s*$/i, ''),
      text.slice(result.index + result.text.length),
    ),
    first: before.trim() === '',
  }
}

const join = (before: string, after: string): string =>
  `${before.trim()} ${after.trim()}`.replace(/\s+/g, ' ').trim()

/** Of several times in a sentence the one that stands where people put it: first, after “remind me”, or last. */
function chosen(results: readonly ParsedResult[], text: string): ParsedResult | undefined {
  const addressed =
    /\b(?:remind|tell|notify|alert|ping|wake)\s+(?:me|us|everyone|everybody)\s*(?:in the|at|on|by)?\s*$/i
  return (
    results.find(({ index }) => text.slice(0, index).trim() === '' || addressed.test(text.slice(0, index))) ??
    results.at(-1)
  )
}

function instantFor({ start }: ParsedResult, wall: number, now: number, zone: string): number {
  const get = (part: Parameters<typeof start.get>[0]) => start.get(part) ?? 0
  const tags = [...start.tags()]
  const partOfDay = tags.find(tag =>
    /^casualReference\/(?:morning|afternoon|evening|night|tonight|noon|midnight)$/.test(tag),
  )
  const named = start.isCertain('hour') || partOfDay !== undefined || tags.includes('result/relativeDate')
  const inTheMorning = !named || (!start.isCertain('hour') && partOfDay === 'casualReference/morning')
  const clock = inTheMorning
    ? ([morning, 0, 0, 0] as const)
    : ([get('hour'), get('minute'), get('second'), get('millisecond')] as const)
  let shown = Date.UTC(get('year'), get('month') - 1, get('day'), ...clock)

  // “In two hours” is two hours from now, whatever the clocks do meanwhile.
  if (tags.includes('result/relativeDateAndTime')) {
    return now + (shown - wall) + (get('millisecond') === 0 ? wall % 1000 : 0)
  }
  const offset = start.isCertain('timezoneOffset') ? start.get('timezoneOffset') : null
  const instant = () => (offset === null ? instantOf(shown, zone) : shown - offset * 60_000)
  const dayIsOpen = !start.isCertain('day') && !start.isCertain('weekday')
  if (instant() <= now && dayIsOpen) shown += 86_400_000
  return instant()
}

/** “On the 5th”: of this month, or of the next that has such a day still to come. */
function withDayOfMonth(text: string, wall: number): string {
  return text.replace(
    /\b(?:on )?the (\d{1,2})(?:st|nd|rd|th)\b(?!\s+(?:of|day|january|february|march|april|may|june|july|august|september|october|november|december)\b)/i,
    (phrase, digits: string) => {
      const today = new Date(wall)
      for (let ahead = 0; ahead < 12; ahead++) {
        const date = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + ahead, Number(digits)))
        const isReal = date.getUTCDate() === Number(digits)
        if (isReal && date.getTime() > wall) return `on ${date.toISOString().slice(0, 10)}`
      }
      return phrase
    },
  )
}

/** The library counts in the process's own zone, which skips hours; for the length of one call it is one that does not. */
function inGreenwich<T>(work: () => T): T {
  const zone = process.env.TZ
  process.env.TZ = 'UTC'
  try {
    return work()
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
}
