import type { WholeCommandAnswer } from '@hatchway/host/api'
import { wrapped } from '../width.ts'
import { commandDetails } from './details.ts'
import type { Key } from './keys.ts'
import type { Page, Size } from './page.ts'
import type { Row } from './row.ts'

/** header, title; keys at the bottom */
const linesAround = 3
const closing: ReadonlySet<Key> = new Set(['escape', 'left', 'h', 'backspace'])

/** One command on the whole screen. Its file and steps arrive later. */
export interface DetailView {
  row: Row
  /** false: it is closed */
  press(key: Key): boolean
  set(row: Row, answer: WholeCommandAnswer | { failure: string }): void
  page(size: Size): Page
}

export function createDetailView(first: Row): DetailView {
  let row = first
  let whole: WholeCommandAnswer | null = null
  let state = 'asking the daemon for more…'
  let scroll = 0
  let height = 1
  /** the lines of a large file are only computed again when something changes */
  let cached: { columns: number; lines: readonly string[] } | undefined

  const linesOf = (columns: number): readonly string[] => {
    if (cached?.columns !== columns) cached = { columns, lines: commandDetails(row, whole, columns) }
    return state === '' ? cached.lines : [...cached.lines, '', ...wrapped(state, columns)]
  }
  const steps: Record<Key, () => number> = {
    up: () => -1,
    k: () => -1,
    down: () => 1,
    j: () => 1,
    'page up': () => -height,
    'page down': () => height,
    ' ': () => height,
    home: () => -Number.MAX_SAFE_INTEGER,
    end: () => Number.MAX_SAFE_INTEGER,
  }
  return {
    get row() {
      return row
    },
    press(key) {
      scroll = Math.max(0, scroll + (steps[key]?.() ?? 0))
      return !closing.has(key)
    },
    set(newRow, answer) {
      row = newRow
      state = 'failure' in answer ? answer.failure : ''
      if (!('failure' in answer)) whole = answer
      cached = undefined
    },
    page({ columns, rows }) {
      height = Math.max(1, rows - linesAround)
      const lines = linesOf(columns)
      scroll = Math.min(scroll, Math.max(0, lines.length - height))
      const last = Math.min(lines.length, scroll + height)
      return {
        title: `${row.type} of ${row.group}`,
        keys: `? help  q quit  escape back  up down scroll  ${last} of ${lines.length} lines`,
        lines: lines.slice(scroll, last),
      }
    },
  }
}
