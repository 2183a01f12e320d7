import { visible } from './text.ts'
import { fill, widthOf } from './width.ts'

export interface Column<T> {
  title: string
  value: (row: T) => string
  /** may be cut on a narrow terminal; other columns are cut only when that is not enough */
  flexible?: boolean
  right?: boolean
  /** a shorter form of the value, for a narrow terminal */
  brief?: (text: string) => string
  /** left out on a terminal that is too narrow even for brief values */
  spare?: boolean
}

const gap = '  '
/** Before a flexible column gets narrower than this, other columns become brief or are left out. */
const comfortable = 12
/** Flexible columns shrink to this width first, then all columns to the next, then to the last. */
const [flexibleLeast, usualLeast, veryLeast] = [5, 8, 4]

interface Layout<T> {
  columns: readonly Column<T>[]
  isBrief: boolean
  widths: readonly number[]
}

/**
 * Rows as aligned columns. Rows may arrive in batches: the titles stand above the first one, and columns only get wider.
 * Without a terminal (`width` undefined) nothing is cut, shortened or left out.
 */
export function createTable<T>(columns: readonly Column<T>[], width: number | undefined) {
  const narrower = [columns, columns.filter(column => !column.spare)].map(some => layoutOf(some, true))
  let layout = layoutOf(columns, false)
  let hasTitles = false

  return (rows: readonly T[]): string => {
    layout = widened(layout, rows)
    while (width !== undefined && narrower.length > 0 && !isComfortable(layout, width)) {
      layout = widened(narrower.shift() ?? layout, rows)
    }
    const widths = width === undefined ? layout.widths : fit(layout, width)
    const lines = rows.map(row => cellsOf(layout, row))
    if (!hasTitles) lines.unshift(layout.columns.map(({ title }) => title))
    hasTitles = true
    return lines.map(cells => `${lineOf(layout, cells, widths)}\n`).join('')
  }
}

const layoutOf = <T>(columns: readonly Column<T>[], isBrief: boolean): Layout<T> => ({
  columns,
  isBrief,
  widths: columns.map(({ title }) => title.length),
})

const cellsOf = <T>({ columns, isBrief }: Layout<T>, row: T): string[] =>
  columns.map(({ value, brief }) => {
    const text = visible(value(row))
    return isBrief && brief ? brief(text) : text
  })

function widened<T>(layout: Layout<T>, rows: readonly T[]): Layout<T> {
  const widths = [...layout.widths]
  for (const row of rows) {
    for (const [i, cell] of cellsOf(layout, row).entries())
      widths[i] = Math.max(widths[i] ?? 0, widthOf(cell))
  }
  return { ...layout, widths }
}

const lineOf = <T>({ columns }: Layout<T>, cells: readonly string[], widths: readonly number[]): string =>
  columns
    .map(({ right = false }, i) => fill(cells[i] ?? '', widths[i] ?? 0, right))
    .join(gap)
    .trimEnd()

const totalOf = (widths: readonly number[]) =>
  widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1))

/** A spare column has to fit whole, or it is not worth its place. */
const isComfortable = <T>({ columns, widths }: Layout<T>, width: number): boolean =>
  totalOf(
    widths.map((wide, i) => (columns[i]?.flexible && !columns[i].spare ? Math.min(wide, comfortable) : wide)),
  ) <= width

/** The widest columns shrink one step at a time, so that similar columns stay similar. */
function fit<T>({ columns, widths }: Layout<T>, width: number): number[] {
  const fitted = [...widths]
  let excess = totalOf(fitted) - width
  const shrink = (least: number, mayShrink: (column: Column<T>) => boolean) => {
    while (excess > 0) {
      let widest = -1
      columns.forEach((column, i) => {
        if (mayShrink(column) && (fitted[i] ?? 0) > (fitted[widest] ?? least)) widest = i
      })
      if (widest === -1) return
      fitted[widest] = (fitted[widest] ?? 0) - 1
      excess--
    }
  }
  shrink(flexibleLeast, column => column.flexible ?? false)
  shrink(usualLeast, () => true)
  shrink(veryLeast, () => true)
  return fitted
}
