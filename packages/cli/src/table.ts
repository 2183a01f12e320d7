import { visible } from './text.ts'

export interface Column<T> {
  title: string
  value: (row: T) => string
  /** may be cut short where the terminal is too narrow */
  flexible?: boolean
  right?: boolean
}

const gap = '  '
const narrowest = 8

export type WidthOf = (text: string) => number

/** Letters that take one column each; for anything else it takes a library to say, which takes time to load. */
const plain = /^[ -~\u00a1-\u024f…]*$/
export const isPlain = (text: string) => plain.test(text)
const plainWidth: WidthOf = text => text.length

export const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

export function cut(text: string, width: number, widthOf: WidthOf): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 0
  for (const { segment } of graphemes.segment(text)) {
    const wide = widthOf(segment)
    if (used + wide > width - 1) break
    kept += segment
    used += wide
  }
  return `${kept}…`
}

/**
 * Rows as aligned columns. Rows may come in batches: the title goes above the first one, and columns only ever get
 * wider. Without a terminal (`width` undefined) nothing is cut.
 */
export function createTable<T>(columns: readonly Column<T>[], width: number | undefined) {
  let widths = columns.map(column => column.title.length)
  let widthOf = plainWidth
  let titled = false

  const line = (cells: readonly string[], fitted: readonly number[]) =>
    columns
      .map(({ right }, i) => {
        const room = fitted[i] ?? 0
        const cell = width === undefined ? (cells[i] ?? '') : cut(cells[i] ?? '', room, widthOf)
        const padding = ' '.repeat(Math.max(0, room - widthOf(cell)))
        return right ? padding + cell : cell + padding
      })
      .join(gap)
      .trimEnd()

  return async (rows: readonly T[]): Promise<string> => {
    const cells = rows.map(row => columns.map(column => visible(column.value(row))))
    if (widthOf === plainWidth && !cells.every(row => row.every(isPlain))) {
      widthOf = (await import('string-width')).default
    }
    widths = widths.map((wide, i) => cells.reduce((max, row) => Math.max(max, widthOf(row[i] ?? '')), wide))
    const fitted = width === undefined ? widths : fit(columns, widths, width)
    const lines = cells.map(row => line(row, fitted))
    if (!titled) {
      titled = true
      lines.unshift(
        line(
          columns.map(column => column.title),
          fitted,
        ),
      )
    }
    return lines.map(text => `${text}\n`).join('')
  }
}

/** The widest flexible column gives way until the line fits, or all of them are narrow. */
function fit(columns: readonly Column<never>[], widths: readonly number[], width: number): number[] {
  const fitted = [...widths]
  const total = () => fitted.reduce((sum, wide) => sum + wide, gap.length * (fitted.length - 1))
  for (let excess = total() - width; excess > 0; excess = total() - width) {
    let widest = -1
    columns.forEach((column, i) => {
      if (column.flexible && (fitted[i] ?? 0) > (fitted[widest] ?? narrowest)) widest = i
    })
    if (widest === -1) break
    const next = Math.max(
      narrowest,
      ...columns.map((column, i) =>
        column.flexible && i !== widest && (fitted[i] ?? 0) < (fitted[widest] ?? 0) ? (fitted[i] ?? 0) : 0,
      ),
    )
    fitted[widest] = Math.max(next, (fitted[widest] ?? 0) - excess)
  }
  return fitted
}
