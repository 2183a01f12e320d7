import type { WholeCommandAnswer } from '@hatchway/host/api'
import { wrapped } from '../width.ts'
import { cell, type Paint } from './cells.ts'
import { createDetailView, type DetailView } from './detail-view.ts'
import type { Filter } from './filter.ts'
import { type HostState, headerOf } from './header.ts'
import type { Key } from './keys.ts'
import { createListView } from './list-view.ts'
import type { Page, Size } from './page.ts'
import type { RowBuffer } from './row-buffer.ts'

/**
 * The view, without terminal or daemon: keys go in, frames come out. One of three pages fills the screen:
 *
 *   list     commands: the newest are followed, or one is selected and stays in its place; a filter can be typed
 *   detail   one command, opened with Enter, until Escape
 *   help     the keys, until any key is pressed
 */
export interface View {
  press(key: Key): 'quit' | 'suspend' | undefined
  frame(size: Size, now: number): string[]
  /** the answer to what was requested with `open` */
  setDetails(seq: number, answer: WholeCommandAnswer | { failure: string }): void
  /** the number of the command that fills the screen */
  opened(): number | undefined
  notify(notice: string, now: number): void
}

interface ViewOptions {
  rows: RowBuffer
  host: HostState
  paint: Paint
  filter?: Partial<Filter>
  /** called for a command whose file and steps are needed */
  open(seq: number): void
}

const noticeMs = 5000

const help = [
  'up, down, k, j      select a command; down from the last one follows the newest again',
  'page up, page down  one screen; home, end: the first, the newest',
  'enter               open the command: file, steps, receipt, audit',
  'escape              back; in the list: follow the newest',
  'g                   filter by group; =name for an exact match',
  't                   filter by type; =name for an exact match',
  'd                   only ok, only refused, only open (the answer follows), all',
  '/                   filter by text in reason, file, request or code',
  'c                   show all commands',
  'space               pause, continue',
  'q, ctrl-c           quit',
  '',
  'While you type a filter, enter keeps it and escape discards it.',
]

export function createView({ rows, host, paint, open, filter }: ViewOptions): View {
  const list = createListView(rows, paint, filter)
  let detail: DetailView | undefined
  let isHelp = false
  let notice = { text: '', until: 0 }

  const pageOf = (size: Size): Page => {
    if (isHelp) {
      const lines = help.flatMap(line => wrapped(line, size.columns))
      return { title: 'Keys', lines, keys: 'any key goes back' }
    }
    return (detail ?? list).page(size)
  }
  const lastLine = (keys: string, now: number): { text: string; style?: 'yellow' | 'dim' } => {
    const typed = list.typed()
    if (typed !== undefined) return { text: typed }
    return now < notice.until ? { text: notice.text, style: 'yellow' } : { text: keys, style: 'dim' }
  }
  const pressList = (key: Key) => {
    const opened = list.press(key)
    if (!opened) return
    detail = createDetailView(opened)
    open(opened.seq)
  }

  return {
    press(key) {
      if (key === 'ctrl-c') return 'quit'
      if (key === 'ctrl-z') return 'suspend'
      if (list.typed() !== undefined) list.press(key)
      else if (key === 'q') return 'quit'
      else if (isHelp || key === '?') isHelp = !isHelp
      else if (!detail) pressList(key)
      else if (!detail.press(key)) detail = undefined
      return undefined
    },
    frame(size, now) {
      const { columns, rows: height } = size
      const { title, lines, keys } = pageOf(size)
      const { text, style } = lastLine(keys, now)
      const bottom = cell(text, { at: 0, width: columns })
      const above = [
        headerOf(host, columns, paint, now),
        paint('bold', cell(title, { at: 0, width: columns })),
        ...lines,
        ...Array.from({ length: Math.max(0, height - 3 - lines.length) }, () => ''),
      ]
      return [...above.slice(0, Math.max(0, height - 1)), style ? paint(style, bottom) : bottom]
    },
    setDetails(seq, answer) {
      if (detail?.row.seq !== seq) return
      detail.set(rows.all().find(row => row.seq === seq) ?? detail.row, answer)
    },
    opened: () => detail?.row.seq,
    notify(text, now) {
      notice = { text, until: now + noticeMs }
    },
  }
}
