import stringWidth from 'string-width'
import { visible } from './text.ts'

/** Characters that take one column each: most text is measured at once. */
const plain = /^[ -~\u00a1-\u024f…]*$/
export const isPlain = (text: string): boolean => plain.test(text)

/** How many columns a text takes on a terminal. */
export function widthOf(text: string): number {
  return isPlain(text) ? text.length : stringWidth(text)
}

let graphemes: Intl.Segmenter | undefined
/** A person sees each of them as one character. */
const graphemesOf = (text: string): Intl.Segments => {
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  return graphemes.segment(text)
}

/** Shortened to `width` columns, with … at the end. */
function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 0
  for (const { segment } of graphemesOf(text)) {
    used += widthOf(segment)
    if (used > width - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** Exactly `width` columns. */
export function fill(text: string, width: number, right = false): string {
  const shown = cut(text, width)
  const padding = ' '.repeat(Math.max(0, width - widthOf(shown)))
  return right ? padding + shown : shown + padding
}

/** One line of text, made visible, as several lines of at most `width` columns. */
export function wrapped(line: string, width: number): string[] {
  const shown = visible(line)
  if (width < 1) return []
  if (widthOf(shown) <= width) return [shown]
  const lines: string[] = []
  let current = ''
  let used = 0
  for (const part of isPlain(shown) ? shown : [...graphemesOf(shown)].map(({ segment }) => segment)) {
    const wide = widthOf(part)
    if (used + wide > width && current !== '') {
      lines.push(current)
      current = ''
      used = 0
    }
    current += part
    used += wide
  }
  return [...lines, current]
}
