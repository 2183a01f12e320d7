import { visible } from '../text.ts'
import { fill, isPlain } from '../width.ts'

const codes = { bold: '1', dim: '2', reverse: '7', red: '31', green: '32', yellow: '33' } as const
export type Style = keyof typeof codes
const colours: ReadonlySet<Style> = new Set<Style>(['red', 'green', 'yellow'])

export type Paint = (style: Style, text: string) => string

/** Without colours, bold and reversed text still is. */
export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    colour || !colours.has(style) ? `\u001b[${codes[style]}m${text}\u001b[0m` : text

export interface Place {
  /** the first column, from 0 */
  at: number
  width: number
  right?: boolean
}

/**
 * Any text as exactly `width` columns. Terminals disagree about the width of some characters: behind them the cursor is
 * set explicitly, so that the next cell starts in its place.
 */
export function cell(text: string, { at, width, right = false }: Place): string {
  const shown = fill(visible(text), width, right)
  return isPlain(shown) ? shown : `${shown}\u001b[${at + width + 1}G`
}
