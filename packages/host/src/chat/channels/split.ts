/**
 * Cuts a text into messages of at most `limit` UTF-16 units: where a paragraph ends, else a line, else a word, else
 * between two graphemes. Only white space at the cuts is left out. What a reader sees as one character is cut only
 * where it is longer than a whole message.
 */
export function splitText(text: string, limit: number): string[] {
  if (!(limit >= 2)) throw new RangeError('a message must have room for 2 units')
  if (text.length <= limit) return text.trim() === '' ? [] : [text]
  const parts: string[] = []
  let rest = text
  while (rest.length > limit) {
    const at = cut(rest, limit)
    const part = rest.slice(0, at).trimEnd()
    if (part !== '') parts.push(part)
    // Line breaks are spent at the cut; what indents the next line is part of it.
    rest = rest.slice(at).replace(leadingBreaks, '')
  }
  if (rest.trim() !== '') parts.push(rest)
  return parts
}

const leadingBreaks = /^(?:[^\S\r\n]*\r?\n)+/
/** Made with the first text that is too long: the rules of all the world's scripts take up some memory. */
let graphemes: Intl.Segmenter | undefined

/** A cut that leaves less than this share of a message is worth less than a finer one that fills it. */
const leastFilled = 1 / 3
/** enough of what follows to see whether the last character goes on */
const lookahead = 64

function cut(text: string, limit: number): number {
  const window = text.slice(0, limit + lookahead)
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  const segments = graphemes.segment(window)
  const isBorder = (at: number) => segments.containing(at)?.index === at
  for (const border of [/\n[^\S\n]*\n/g, /\n/g, /\s/g]) {
    const at = lastBorder(window, border, limit, isBorder)
    if (at !== undefined) return at
  }
  const at = segments.containing(limit)?.index ?? limit
  if (at > 0) return at
  // One character that fills the message: between two of its code points, then.
  return isLowSurrogate(window.charCodeAt(limit)) ? limit - 1 : limit
}

function lastBorder(
  window: string,
  border: RegExp,
  limit: number,
  isBorder: (at: number) => boolean,
): number | undefined {
  const ends: number[] = []
  for (const match of window.matchAll(border)) {
    // White space is left out at the cut, so it may lie beyond the limit; what is before it must not.
    if (match.index > limit) break
    const end = match.index + match[0].length
    if (match.index >= limit * leastFilled) ends.push(end)
  }
  return ends.findLast(isBorder)
}

const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff
