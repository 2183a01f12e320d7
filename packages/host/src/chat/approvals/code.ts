import { randomInt } from 'node:crypto'
import { decisions } from '../../store/entities/card.ts'

/**
 * Codes for whoever decides by typing. Consonants only: none looks like another, like a digit, or like a word that
 * people say to each other. Ten of twenty letters are 43 bits, for something that is open for minutes.
 */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const half = 5

export function newCode(): string {
  const code = Array.from({ length: half * 2 }, () => letters[randomInt(letters.length)]).join('')
  return `${code.slice(0, half)}-${code.slice(half)}`
}

export type Decided = (typeof decisions)[number]

export interface Said {
  decision: Decided
  code: string
  /** whatever else was said with it */
  words: string
}

const part = `[${letters}]{${half}}`
const codeForm = `(${part})[-\u2010-\u2015 ]?(${part})`
const form = new RegExp(
  `^(allow|deny|always(?:\\s+tool)?)\\s+"?${codeForm}(?![\\p{L}\\p{N}])"?[\\s.,:;!-]*(.*)$`,
  'isu',
)
const alone = new RegExp(`^${codeForm}$`, 'iu')

/** `allow BCDFG-HJKLM`, `always tool BCDFG-HJKLM`, `deny bcdfghjklm too expensive`; undefined: it is about something else. */
export function decisionIn(text: string): Said | undefined {
  const [, decision = '', first = '', second = '', words = ''] =
    form.exec(text.normalize('NFKC').trim()) ?? []
  const verb = decisions.find(each => each === decision.toLowerCase().replace(/\s+/, '_'))
  return verb && { decision: verb, code: canonical(first, second), words: words.trim() }
}

/** What names an approval on a command line, where it is a code and not a number. */
export function codeIn(text: string): string | undefined {
  const [, first, second] = alone.exec(text.normalize('NFKC').trim()) ?? []
  return first === undefined || second === undefined ? undefined : canonical(first, second)
}

const canonical = (first: string, second: string) => `${first}-${second}`.toUpperCase()
