import stringWidth from 'string-width'
import { cut, graphemesOf, isPlain } from '../table.ts'
import { visible } from '../text.ts'

const codes = { bold: '1', dim: '2', reverse: '7', red: '31', green: '32', yellow: '33' } as const
export type Style = keyof typeof codes
const colours: ReadonlySet<Style> = new Set<Style>(['red', 'green', 'yellow'])

export type Paint = (style: Style, text: string) => string

/** Without colours, what is bold or reversed still is. */
export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    colour || !colours.has(style) ? `\u001b[${codes[style]}m${text}\u001b[0m` : text

const widthOf = (text: string) => (isPlain(text) ? text.length : stringWidth(text))

export interface Place {
  /** the first column, from 0 */
  at: number
  width: number
  right?: boolean
}

/**
 * Any text as exactly so many columns. How wide a letter is, every terminal decides for itself: behind letters that may
 * be wide, the cursor is told where it is, so that what follows stands where it should.
 */
export function cell(text: string, { at, width, right = false }: Place): string {
  const shown = cut(visible(text), width, widthOf)
  const padding = ' '.repeat(Math.max(0, width - widthOf(shown)))
  const whole = right ? padding + shown : shown + padding
  return isPlain(shown) ? whole : `${whole}\u001b[${at + width + 1}G`
}

/** One line of text as lines that fit. */
export function wrapped(line: string, width: number): string[] {
  const shown = visible(line)
  if (width < 1) return []
  if (isPlain(shown)) {
    const parts: string[] = []
    for (let at = 0; at < shown.length || at === 0; at += width) parts.push(shown.slice(at, at + width))
    return parts
  }
  const lines: string[] = []
  let current = ''
  let used = 0
  for (const { segment } of graphemesOf(shown)) {
    const wide = widthOf(segment)
    if (used + wide > width && current !== '') {
      lines.push(current)
      current = ''
      used = 0
    }
    current += segment
    used += wide
  }
  return [...lines, current]
}
