import type { HereDoc, Redirect, Redirection } from 'unbash'
import type { Judging } from './types.ts'
import { judgeHereText, readWord } from './words.ts'

export function judgeRedirection(redirection: Redirection, judging: Judging) {
  if (redirection.type === 'HereDoc') return judgeHereDocument(redirection, judging)
  if (redirection.type === 'HereString') {
    if (redirection.target) readWord(redirection.target, judging)
    if (redirection.descriptor) judging.note('unknown', 'it uses a file descriptor in an unusual way')
    return
  }
  judgeFile(redirection, judging)
}

function judgeFile({ operator, descriptor, target }: Redirect, judging: Judging) {
  if (!target) return judging.note('unclear', 'a redirection goes nowhere')
  const { text } = readWord(target, judging)
  const [only, more] = target.parts ?? []
  // `< <(…)`: what is in the brackets has been judged.
  if (
    operator === '<' &&
    !descriptor &&
    only?.type === 'ProcessSubstitution' &&
    only.operator === '<' &&
    !more
  )
    return
  if (/^~\/[\w./-]+$/.test(target.text) && operator !== '<')
    return judging.note('unknown', 'it writes a file outside the working directory')
  if (text === undefined)
    return judging.note('hidden', 'a redirection to a name that is decided when it runs; it may be a network')
  if (/^\/dev\/(?:tcp|udp)\//.test(text)) return judging.note('network', 'a redirection to a network')
  const from =
    descriptor?.type === 'FileDescriptor' ? descriptor.value : descriptor === undefined ? undefined : -1
  if (operator === '>&' && /^[12]$/.test(text) && (from === undefined || from === 1 || from === 2)) return
  if (
    text === '/dev/null' &&
    (from === undefined || (from >= 0 && from <= 2)) &&
    /^(?:<|&?>>?)$/.test(operator)
  )
    return
  if (operator === '<' && (from === undefined || from === 0)) {
    if (/^\/+dev\b/.test(text)) judging.note('unknown', 'it reads from a device')
    return
  }
  if ((operator === '>' || operator === '>>') && (from === undefined || from === 1 || from === 2))
    return judgeWrite(text, judging)
  judging.note('unknown', 'it uses a redirection in an unusual way')
}

/**
 * What is written now may be run later: start-up files, hooks, programs, settings, the agent's own instructions. So only
 * a file below the working directory whose name says that it is text, none of it hidden, and not in capitals.
 */
const isTextFile = (path: string): boolean =>
  isPathBelow(path) && /(?:^|\/)(?=[^/]*[a-z][^/]*\.)[^/]+\.(?:txt|md|csv|tsv|log|diff|patch)$/.test(path)

/** A plain path below the working directory, no part of it hidden. */
export const isPathBelow = (path: string): boolean =>
  /^(?:\.\/)?[A-Za-z0-9_][\w+=@,.-]*(?:\/[A-Za-z0-9_][\w+=@,.-]*)*\/?$/.test(path)

export function judgeWrite(path: string, judging: Judging) {
  if (!isTextFile(path))
    judging.note('unknown', 'it writes a file that is more than text in the working directory')
}

function judgeHereDocument(document: HereDoc, judging: Judging) {
  const { delimiter, body, closing, descriptor, operator } = document
  if (!delimiter?.quoted) judgeHereText(body.text, body.parts, judging)
  if (descriptor) judging.note('unknown', 'it uses a file descriptor in an unusual way')
  if (!delimiter || !closing) return judging.note('unclear', 'a here-document has no end')
  const lines = body.text.split('\n').map(line => (operator === '<<-' ? line.replace(/^\t+/, '') : line))
  if (
    judging.substituted ||
    !/^(?:\w+|'\w+'|"\w+")$/.test(delimiter.text) ||
    (!delimiter.quoted && body.text.includes('\\\n')) ||
    lines.includes(delimiter.value)
  )
    judging.note('unclear', 'where a here-document ends is not the same for every shell')
}
