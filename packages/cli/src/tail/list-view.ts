import { cell, type Paint } from './cells.ts'
import { type Filter, filterInWords, matches } from './filter.ts'
import { createFilterInput } from './filter-input.ts'
import type { Key } from './keys.ts'
import { listLine, titleLine } from './list-line.ts'
import type { Page, Size } from './page.ts'
import type { Row } from './row.ts'
import { indexOfSeq, type RowBuffer } from './row-buffer.ts'

/** header, filter, titles; keys at the bottom */
const linesAround = 4
const openingKeys: ReadonlySet<Key> = new Set(['enter', 'right'])

export interface ListView {
  /** returns the row to open, if one is opened */
  press(key: Key): Row | undefined
  /** the filter that is being typed, for the last line */
  typed(): string | undefined
  page(size: Size): Page
}

/** The list of commands: following the newest or with one selected, filtered, paused. */
export function createListView(buffer: RowBuffer, paint: Paint, initial: Partial<Filter> = {}): ListView {
  const filter = createFilterInput(initial)
  let paused: { rows: readonly Row[]; last: number } | undefined
  /** the number of the selected row; undefined: the newest rows are followed */
  let selected: number | undefined
  /** the number of the first row that is shown while one is selected */
  let top = 0
  let height = 1
  let cached: { version: number; filter: Filter; source: unknown; rows: readonly Row[] } | undefined

  const rows = (): readonly Row[] => {
    const version = paused ? 0 : buffer.version()
    const wanted = filter.current()
    if (cached?.version !== version || cached.filter !== wanted || cached.source !== paused) {
      const all = paused?.rows ?? buffer.all()
      cached = { version, filter: wanted, source: paused, rows: all.filter(row => matches(row, wanted)) }
    }
    return cached.rows
  }
  const indexOf = (seq: number) => Math.min(indexOfSeq(rows(), seq), rows().length - 1)

  const move = (by: number) => {
    const list = rows()
    if (list.length === 0 || (selected === undefined && by > 0)) return
    if (selected === undefined) top = list[Math.max(0, list.length - height)]?.seq ?? 0
    const to = by + (selected === undefined ? list.length : indexOf(selected))
    selected = to >= list.length ? undefined : list[Math.max(0, to)]?.seq
  }
  const follow = () => {
    selected = undefined
  }
  const actions: Record<Key, () => void> = {
    up: () => move(-1),
    k: () => move(-1),
    down: () => move(1),
    j: () => move(1),
    'page up': () => move(-height),
    'page down': () => move(height),
    home: () => move(-Number.MAX_SAFE_INTEGER),
    end: follow,
    G: follow,
    escape: follow,
    ' ': () => {
      paused = paused ? undefined : { rows: [...buffer.all()], last: buffer.last() }
    },
  }

  /** Which rows are shown: the newest, or those around the selected one, which stays where it is. */
  const range = (): { from: number; marked: number } => {
    const list = rows()
    const newest = Math.max(0, list.length - height)
    if (selected === undefined || list.length === 0) return { from: newest, marked: -1 }
    const marked = indexOf(selected)
    const unmoved = Math.min(Math.max(indexOfSeq(list, top), marked - height + 1), marked)
    const from = Math.min(unmoved, newest)
    top = list[from]?.seq ?? 0
    return { from, marked }
  }

  return {
    typed: filter.typed,
    press(key) {
      const wasTyping = filter.typed() !== undefined
      filter.press(key)
      if (wasTyping) return undefined
      if (!openingKeys.has(key)) {
        actions[key]?.()
        return undefined
      }
      if (selected === undefined) move(-1)
      return selected === undefined ? undefined : rows()[indexOf(selected)]
    },
    page({ columns, rows: lines }) {
      height = Math.max(1, lines - linesAround)
      const { from, marked } = range()
      const shown = rows().slice(from, from + height)
      const total = (paused?.rows ?? buffer.all()).length
      return {
        title: titleOf(filter.current(), rows().length, total, buffer, paused?.last),
        keys: '? help  q quit  up down select  enter open  g t d / filter  c clear  space pause',
        lines: [
          titleLine(columns, paint),
          ...shown.map((row, i) => listLine(row, columns, from + i === marked, paint)),
          ...(shown.length === 0 ? [cell(emptyText(total), { at: 0, width: columns })] : []),
        ],
      }
    },
  }
}

/** `pausedAt`: the last row when the list was paused. */
function titleOf(
  filter: Filter,
  shown: number,
  total: number,
  buffer: RowBuffer,
  pausedAt: number | undefined,
): string {
  const count = shown === total ? total : `${shown} of ${total}`
  const later = pausedAt === undefined ? 0 : buffer.all().length - indexOfSeq(buffer.all(), pausedAt + 1)
  return `${filterInWords(filter)}: ${count}${pausedAt === undefined ? '' : `  PAUSED, ${later} new`}`
}

const emptyText = (total: number) =>
  total === 0
    ? '  No commands yet. Commands of agents and of npx hatchway post appear here.'
    : '  No command matches. Press c to show all.'
