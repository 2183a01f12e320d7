import { visible } from './text.ts'

export interface Column<T> {
  title: string
  value: (row: T) => string
  /** may be cut short where the terminal is too narrow; the others only where that is not enough */
  flexible?: boolean
  right?: boolean
  /** what of a value will do where not everything has room */
  brief?: (text: string) => string
  /** left out where not even that has room */
  spare?: boolean
}

const gap = '  '
/** less of a flexible column is shown only where no other can be brief or left out instead */
const comfortable = 12
/** what flexible columns may be cut to before others are */
const narrow = 5
/** what the others may be cut to, and then all, before a line breaks */
const briefest = 8
const leastOfAll = 4

export type WidthOf = (text: string) => number

/** Letters that take one column each; for anything else it takes a library to say, which takes time to load. */
const plain = /^[ -~\u00a1-\u024f…]*$/
export const isPlain = (text: string) => plain.test(text)
const plainWidth: WidthOf = text => text.length

let graphemes: Intl.Segmenter | undefined
export const graphemesOf = (text: string) => {
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  return graphemes.segment(text)
}

export function cut(text: string, width: number, widthOf: WidthOf): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 0
  for (const { segment } of graphemesOf(text)) {
    const wide = widthOf(segment)
    if (used + wide > width - 1) break
    kept += segment
    used += wide
  }
  return `${kept}…`
}

interface Form<T> {
  columns: readonly Column<T>[]
  isBrief: boolean
}

/** From the whole table to what is left of it on a narrow terminal. */
const formsOf = <T>(columns: readonly Column<T>[]): Form<T>[] => [
  { columns, isBrief: true },
  { columns: columns.filter(column => !column.spare), isBrief: true },
]

/**
 * Rows as aligned columns. Rows may come in batches: the title goes above the first one, and columns only ever get
 * wider. Without a terminal (`width` undefined) nothing is cut, shortened or left out.
 */
export function createTable<T>(columns: readonly Column<T>[], width: number | undefined) {
  const narrower = formsOf(columns)
  let form: Form<T> = { columns, isBrief: false }
  let widths = titleWidths(form)
  let widthOf = plainWidth
  let titled = false

  const line = (cells: readonly string[], fitted: readonly number[]) =>
    form.columns
      .map(({ right }, i) => {
        const room = fitted[i] ?? 0
        const cell = width === undefined ? (cells[i] ?? '') : cut(cells[i] ?? '', room, widthOf)
        const padding = ' '.repeat(Math.max(0, room - widthOf(cell)))
        return right ? padding + cell : cell + padding
      })
      .join(gap)
      .trimEnd()

  const cellsOf = (rows: readonly T[]) =>
    rows.map(row =>
      form.columns.map(({ value, brief }) => {
        const text = visible(value(row))
        return form.isBrief && brief ? brief(text) : text
      }),
    )
  const widen = (cells: readonly string[][]) => {
    widths = widths.map((wide, i) => cells.reduce((max, row) => Math.max(max, widthOf(row[i] ?? '')), wide))
  }

  return async (rows: readonly T[]): Promise<string> => {
    let cells = cellsOf(rows)
    if (widthOf === plainWidth && !cells.every(row => row.every(isPlain))) {
      widthOf = (await import('string-width')).default
    }
    widen(cells)
    while (width !== undefined && !isComfortable(form.columns, widths, width)) {
      const next = narrower.shift()
      if (!next) break
      form = next
      widths = titleWidths(form)
      cells = cellsOf(rows)
      widen(cells)
    }
    const fitted = width === undefined ? widths : fit(form.columns, widths, width)
    const lines = cells.map(row => line(row, fitted))
    if (!titled) {
      titled = true
      lines.unshift(
        line(
          form.columns.map(column => column.title),
          fitted,
        ),
      )
    }
    return lines.map(text => `${text}\n`).join('')
  }
}

const titleWidths = <T>({ columns }: Form<T>) => columns.map(column => column.title.length)

const totalOf = (widths: readonly number[]) =>
  widths.reduce((sum, wide) => sum + wide, gap.length * (widths.length - 1))

/** What says nothing new has all the room it needs, or it is not worth its place. */
const isComfortable = (columns: readonly Column<never>[], widths: readonly number[], width: number) =>
  totalOf(
    widths.map((wide, i) => (columns[i]?.flexible && !columns[i].spare ? Math.min(wide, comfortable) : wide)),
  ) <= width

/** The widest columns give way, one step at a time, so that those that are alike stay so. */
function fit(columns: readonly Column<never>[], widths: readonly number[], width: number): number[] {
  const fitted = [...widths]
  let excess = totalOf(fitted) - width
  const shrink = (least: number, mayGive: (column: Column<never>) => boolean) => {
    while (excess > 0) {
      let widest = -1
      columns.forEach((column, i) => {
        if (mayGive(column) && (fitted[i] ?? 0) > (fitted[widest] ?? least)) widest = i
      })
      if (widest === -1) return
      fitted[widest] = (fitted[widest] ?? 0) - 1
      excess--
    }
  }
  shrink(narrow, column => column.flexible ?? false)
  shrink(briefest, () => true)
  shrink(leastOfAll, () => true)
  return fitted
}
