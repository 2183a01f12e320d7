import { clock, milliseconds } from '../format.ts'
import { cell, type Paint, type Place, type Style } from './cells.ts'
import type { Decision, Row } from './row.ts'

interface Column extends Place {
  title: string
  value: (row: Row) => string
}

const gap = 2
/** for the mark of the selected row */
const margin = 2

const styles: Record<Decision, Style> = { ok: 'green', refused: 'red', open: 'yellow' }

/** On a narrow terminal names are cut, on a very narrow one columns are left out. */
function columnsOf(width: number): Column[] {
  const timeWidth = width < 64 ? 8 : 12
  const names = Math.max(8, Math.min(16, Math.floor(width / 6)))
  const columns: Omit<Column, 'at'>[] = [
    { title: 'TIME', width: timeWidth, value: row => clock(row.receivedAt).slice(0, timeWidth) },
    { title: 'GROUP', width: names, value: row => row.group },
    { title: 'TYPE', width: names + 2, value: row => row.type },
    { title: 'DECISION', width: 8, value: row => row.decision },
    { title: 'CODE', width: names, value: row => (row.repeated ? `repeated ${row.code}` : row.code) },
    { title: 'TOOK', width: 10, right: true, value: row => milliseconds(row.tookUs) },
    { title: 'REASON', width: 0, value: row => row.message },
  ]
  const placed: Column[] = []
  let at = margin
  for (const column of columns) {
    const room = width - at
    const isLast = column.width === 0
    if (room < (isLast ? 12 : column.width)) break
    placed.push({ ...column, at, width: isLast ? room : column.width })
    at += column.width + gap
  }
  return placed
}

const joined = (width: number, text: (column: Column) => string): string => {
  let line = ' '.repeat(margin)
  let end = margin
  for (const column of columnsOf(width)) {
    line += ' '.repeat(column.at - end) + text(column)
    end = column.at + column.width
  }
  return line
}

export const titleLine = (width: number, paint: Paint): string =>
  paint(
    'dim',
    joined(width, column => cell(column.title, column)),
  )

export function listLine(row: Row, width: number, isSelected: boolean, paint: Paint): string {
  const line = joined(width, column => {
    const text = cell(column.value(row), column)
    return column.title === 'DECISION' && !isSelected ? paint(styles[row.decision], text) : text
  })
  return isSelected ? paint('reverse', `> ${line.slice(margin)}`) : line
}
