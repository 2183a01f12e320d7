import { numberOf } from './numbers.ts'
import { type ServiceIntent, understandService } from './understand-services.ts'
import { findWhen, type When } from './when.ts'

/** Which task is meant: by its id, or by words that are in it. */
export type Which = { id: string } | { words: string } | 'all'

export type Intent =
  | { kind: 'remind'; when: When; text: string }
  | { kind: 'no_time'; text: string }
  | { kind: 'only_time'; when: When }
  | { kind: 'list' }
  | { kind: 'pause' | 'resume' | 'cancel'; which: Which }
  | { kind: 'change'; which: Which; when?: When; text?: string }
  | { kind: 'clock' | 'help' | 'greeting' | 'thanks' | 'unknown' }
  | ServiceIntent

const politeness =
  /^(?:(?:please|hey|hi|hello|ok|okay|so|and|then)\b[\s,!]*|(?:can|could|would|will)\s+you\s+(?:please\s+)?|i(?:'d| would)\s+like\s+(?:you\s+)?to\s+|i\s+want\s+you\s+to\s+)+(?=\S)/i

const verbs: Record<string, 'pause' | 'resume' | 'cancel' | 'change'> = {
  pause: 'pause',
  stop: 'pause',
  suspend: 'pause',
  hold: 'pause',
  resume: 'resume',
  continue: 'resume',
  unpause: 'resume',
  restart: 'resume',
  cancel: 'cancel',
  delete: 'cancel',
  remove: 'cancel',
  drop: 'cancel',
  change: 'change',
  update: 'change',
  move: 'change',
  reschedule: 'change',
  edit: 'change',
  rename: 'change',
}

const things = '(?:task|reminder|job|schedule)s?'
const aThing = new RegExp(`^(?:the |my )*${things}\\b|\\b${things}$`, 'i')

/** a request fits in it; what does not is no request, and reading it would take time */
const longest = 2000

export function understand(message: string, now: Date, zone: string, assistant: string): Intent {
  const text = plain(message, assistant)
  if (text === '') return { kind: 'help' }
  if (text.length > longest) return { kind: 'unknown' }
  const service = understandService(text)
  if (service?.kind === 'forget' && aThing.test(service.what)) {
    return { kind: 'cancel', which: whichOf(service.what) }
  }
  const simple = service ?? simpleIntent(text)
  if (simple) return simple
  const verb = /^(\w+)\b/.exec(text)?.[1]?.toLowerCase() ?? ''
  const action = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
  if (action === 'change') return change(text.slice(verb.length).trim(), now, zone)
  if (action) return { kind: action, which: whichOf(text.slice(verb.length)) }
  return reminder(text, now, zone)
}

/** Without the call, the courtesies, and the mark at the end. */
function plain(message: string, assistant: string): string {
  const name = assistant.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return message
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/\s+/g, ' ')
    .trim()
    .replace(new RegExp(`^(?:hey |hi |hello )?(?:@\\S+|@?${name}\\b)[\\s,:!]*`, 'i'), '')
    .replace(politeness, '')
    .replace(/[\s.!?]*(?:,?\s*(?:please|thanks|thank you))?[\s.!?]*$/i, '')
    .trim()
}

function simpleIntent(text: string): Intent | undefined {
  const listing = new RegExp(
    `^(?:(?:what|which|show|list|see|tell me|give me|do i have|are there|any|my|all)\\b.*\\b(?:${things}|scheduled?)\\b.*|list|${things}|what(?:'s| is) (?:scheduled|planned|coming up))$`,
    'i',
  )
  if (listing.test(text)) return { kind: 'list' }
  if (
    /^(?:what(?:'s| is) the time|what time is it|what(?:'s| is) (?:the date|today).*|time|date)$/i.test(text)
  ) {
    return { kind: 'clock' }
  }
  if (/^(?:help|what can you do.*|who are you|what are you|how does this work|commands|\?)$/i.test(text))
    return { kind: 'help' }
  if (/^(?:hi|hello|hey|good (?:morning|afternoon|evening)|hey there|hi there)$/i.test(text))
    return { kind: 'greeting' }
  if (/^(?:thanks?|thank you|thx|cheers|great|perfect|nice|ok|okay)\b.{0,20}$/i.test(text))
    return { kind: 'thanks' }
  return undefined
}

const leading = new RegExp(`^(?:the |my |this )*(?:${things}\\s*)?(?:number |no\\.? |id |#)?\\s*`, 'i')

export function whichOf(rest: string): Which {
  const text = rest.trim()
  if (new RegExp(`^(?:all|everything|every ${things}|all (?:of )?(?:the |my )*${things})$`, 'i').test(text))
    return 'all'
  const subject = text.replace(leading, '').trim()
  const number = numberOf(subject)
  if (number !== undefined) return { id: String(number) }
  if (/^[A-Za-z0-9][A-Za-z0-9._:-]*\d[A-Za-z0-9._:-]*$/.test(subject)) return { id: subject }
  return {
    words: subject
      .replace(new RegExp(`\\s*${things}$`, 'i'), '')
      .replace(/^(?:reminding (?:me|us)|to|about|that|of|for)\s+(?:to\s+|about\s+)?/i, '')
      .trim(),
  }
}

/** “task 3 to tomorrow at 10”, “reminder 3 to say drink water”, “the stretch reminder to every day at 8” */
function change(text: string, now: Date, zone: string): Intent {
  const match = /^(.+?)(?:\s+to\s+|\s*:\s+|\s+(?=(?:every|each|at|in|on|tomorrow)\b))(.+)$/i.exec(text)
  if (!match) {
    return { kind: 'problem', message: 'Say what to change it to: “change task 3 to tomorrow at 10”.' }
  }
  const which = whichOf(match[1] ?? '')
  const wish = match[2] ?? ''
  if (/^(?:say|read|the text)\b/i.test(wish)) {
    return { kind: 'change', which, text: subjectOf(wish.replace(/^(?:say|read|the text)\s*:?\s*/i, '')) }
  }
  const found = findWhen(wish, now, zone)
  if (!found) return { kind: 'change', which, text: subjectOf(wish) }
  if ('problem' in found.when) return { kind: 'problem', message: found.when.problem }
  const text_ = subjectOf(found.rest)
  return { kind: 'change', which, when: found.when, ...(text_ === '' ? {} : { text: text_ }) }
}

const calling = /\b(?:remind|tell|notify|alert|ping|wake)\s+(?:me|us|everyone|everybody)\b(?:\s+up\b)?/i
const asking =
  /^(?:set|create|make|add|schedule)\s+(?:up\s+)?(?:an?\s+|another\s+)?(?:new\s+)?(?:reminder|alarm|task|timer)\b/i

function reminder(text: string, now: Date, zone: string): Intent {
  const called = calling.test(text) || asking.test(text)
  const found = findWhen(text, now, zone)
  if (!found) return called ? { kind: 'no_time', text: subjectOf(text) } : { kind: 'unknown' }
  const isMeant = called || found.first || ('type' in found.when && found.when.type !== 'once')
  if (!isMeant) return { kind: 'unknown' }
  if ('problem' in found.when) return { kind: 'problem', message: found.when.problem }
  const subject = subjectOf(found.rest)
  if (subject === '' && !called) return { kind: 'only_time', when: found.when }
  return { kind: 'remind', when: found.when, text: subject }
}

/** What is left to be said when the time comes. */
function subjectOf(text: string): string {
  let subject = text.replace(calling, ' ').replace(asking, ' ').replace(/\s+/g, ' ').trim()
  for (let before = ''; before !== subject; ) {
    before = subject
    subject = subject
      .replace(/^[\s,;:–-]+|[\s,;:–-]+$/g, '')
      .replace(/^(?:to|that|about|of|for|and|then|please)\s+/i, '')
      .replace(/\s+(?:to|that|about|of|for|and|please)$/i, '')
      .replace(/^(?:to|that|about|of|for|and|at|on|in|please)$/i, '')
  }
  return subject.replace(/^["“](.*)["”]$/, '$1').trim()
}
