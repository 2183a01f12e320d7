import type { WholeCommandAnswer } from '@hatchway/host/api'
import { visible } from '../text.ts'
import { cell, type Paint, wrapped } from './cells.ts'
import { everything, type Filter, matches, nextDecision, wordsOf } from './filter.ts'
import { type HostState, headerOf } from './header.ts'
import { type Kept, placeOf } from './kept.ts'
import type { Key } from './keys.ts'
import { lineOf, titlesOf } from './list.ts'
import { linesOf } from './one.ts'
import type { Row } from './row.ts'

/**
 * The view, without terminal or daemon: keys go in, frames come out.
 *
 *   following   the newest commands are at the bottom, and move up as others come
 *   selected    one command is marked and stays where it is, whatever comes below it
 *   paused      the list is the one of when it was paused
 *   typing      letters go into a filter, which works at once; Enter keeps it, Escape takes it back
 *   opened      one command fills the screen
 *   help        the keys fill the screen, until any of them is pressed
 */
export interface View {
  press(key: Key): 'quit' | 'suspend' | undefined
  frame(size: Size, now: number): string[]
  /** what was asked for with `open` has come */
  tell(seq: number, answer: WholeCommandAnswer | { failure: string }): void
  /** the command that fills the screen */
  opened(): number | undefined
  say(notice: string, now: number): void
}

interface Size {
  columns: number
  rows: number
}

interface ViewOptions {
  kept: Kept
  host: HostState
  paint: Paint
  filter?: Partial<Filter>
  /** called for a command whose file and steps are wanted */
  open(seq: number): void
}

const noticeMs = 5000
const longestTyped = 100
/** header, filter, titles; keys at the bottom */
const linesAround = 4

const prompts = { group: 'group', type: 'type', text: 'text' } as const
type Field = keyof typeof prompts
const fields: Record<Key, Field> = { g: 'group', t: 'type', '/': 'text' }

const help = [
  'up, down, k, j      select a command; down from the last one follows again',
  'page up, page down  a screen at once; home, end: the first, the newest',
  'enter               all about the command: file, steps, receipt, audit',
  'escape              back; in the list: select nothing, follow the newest',
  'g                   only groups with this in their name; =name for exactly this one',
  't                   only types with this in their name; =name for exactly this one',
  'd                   only ok, only refused, only open (the answer follows), all',
  '/                   only with this text in reason, file, request or code',
  'c                   all commands again',
  'space               pause, and go on',
  'q, ctrl-c           quit',
  '',
  'While you type a filter, enter keeps it and escape takes it back.',
]

export function createView({ kept, host, paint, open, filter: first = {} }: ViewOptions): View {
  let filter: Filter = { ...everything, ...first }
  let typing: { field: Field; before: string } | undefined
  let paused: { rows: readonly Row[]; last: number } | undefined
  let selected: number | undefined
  /** the number of the first row that is shown while one is selected */
  let top = 0
  let one:
    | { row: Row; whole: WholeCommandAnswer | null; failure: string | undefined; scroll: number }
    | undefined
  /** its lines, while it and the width are the same */
  let made: { shown: typeof one; columns: number; lines: readonly string[] } | undefined
  let isHelp = false
  let notice = { text: '', until: 0 }
  /** of the list, when it was last shown */
  let height = 1

  let found: { version: number; filter: Filter; paused: typeof paused; rows: readonly Row[] } | undefined
  const rows = (): readonly Row[] => {
    const version = kept.version()
    const isSame =
      found?.filter === filter &&
      found.paused === paused &&
      (paused !== undefined || found.version === version)
    if (!found || !isSame) {
      const all = paused?.rows ?? kept.all()
      found = { version, filter, paused, rows: all.filter(row => matches(row, filter)) }
    }
    return found.rows
  }

  const move = (by: number) => {
    const list = rows()
    if (list.length === 0) return
    const isFollowing = selected === undefined
    const from = isFollowing ? list.length : Math.min(placeOf(list, selected ?? 0), list.length - 1)
    if (isFollowing) {
      if (by > 0) return
      top = list[Math.max(0, list.length - height)]?.seq ?? 0
    }
    const to = from + by
    selected = to >= list.length ? undefined : list[Math.max(0, to)]?.seq
  }

  const openOne = () => {
    const list = rows()
    const row =
      selected === undefined ? list.at(-1) : list[Math.min(placeOf(list, selected), list.length - 1)]
    if (!row) return
    if (selected === undefined) move(-1)
    one = { row, whole: null, failure: undefined, scroll: 0 }
    open(row.seq)
  }

  const type = (key: Key, { field, before }: { field: Field; before: string }) => {
    const change = (text: string) => {
      filter = { ...filter, [field]: text.slice(0, longestTyped) }
    }
    switch (key) {
      case 'enter':
        typing = undefined
        break
      case 'escape':
        change(before)
        typing = undefined
        break
      case 'backspace':
        change([...filter[field]].slice(0, -1).join(''))
        break
      case 'ctrl-u':
        change('')
        break
      default:
        if ([...key].length === 1 && visible(key) === key) change(filter[field] + key)
    }
  }

  const pressInOne = (key: Key, shown: NonNullable<typeof one>) => {
    const scroll = (by: number) => {
      shown.scroll = Math.max(0, shown.scroll + by)
    }
    switch (key) {
      case 'escape':
      case 'left':
      case 'h':
      case 'backspace':
        one = undefined
        break
      case 'up':
      case 'k':
        scroll(-1)
        break
      case 'down':
      case 'j':
        scroll(1)
        break
      case 'page up':
        scroll(-height)
        break
      case 'page down':
      case ' ':
        scroll(height)
        break
      case 'home':
        shown.scroll = 0
        break
      case 'end':
        shown.scroll = Number.MAX_SAFE_INTEGER
    }
  }

  const pressInList = (key: Key) => {
    const field = fields[key]
    if (field) typing = { field, before: filter[field] }
    switch (key) {
      case 'up':
      case 'k':
        return move(-1)
      case 'down':
      case 'j':
        return move(1)
      case 'page up':
        return move(-height)
      case 'page down':
        return move(height)
      case 'home':
        return move(-Number.MAX_SAFE_INTEGER)
      case 'end':
      case 'G':
      case 'escape':
        selected = undefined
        return
      case 'enter':
      case 'right':
        return openOne()
      case 'd':
        filter = { ...filter, decision: nextDecision(filter.decision) }
        return
      case 'c':
        filter = everything
        return
      case ' ':
        paused = paused ? undefined : { rows: [...kept.all()], last: kept.last() }
    }
  }

  const bottom = (columns: number, now: number, keys: string): string => {
    if (typing) {
      const typed = `${prompts[typing.field]}: ${filter[typing.field]}_`
      return cell(typed, { at: 0, width: columns })
    }
    if (now < notice.until) return paint('yellow', cell(notice.text, { at: 0, width: columns }))
    return paint('dim', cell(keys, { at: 0, width: columns }))
  }

  const page = (title: string, lines: readonly string[], size: Size, now: number, keys: string): string[] => [
    headerOf(host, size.columns, paint, now),
    paint('bold', cell(title, { at: 0, width: size.columns })),
    ...lines,
    ...Array.from({ length: Math.max(0, size.rows - 3 - lines.length) }, () => ''),
    bottom(size.columns, now, keys),
  ]

  const frameOfOne = (shown: NonNullable<typeof one>, size: Size, now: number): string[] => {
    height = Math.max(1, size.rows - 3)
    const state = shown.failure ?? (shown.whole ? '' : 'asking the daemon for more…')
    if (made?.shown !== shown || made.columns !== size.columns) {
      made = { shown, columns: size.columns, lines: linesOf(shown.row, shown.whole, size.columns) }
    }
    const lines = state === '' ? made.lines : [...made.lines, '', ...wrapped(state, size.columns)]
    shown.scroll = Math.min(shown.scroll, Math.max(0, lines.length - height))
    const until = Math.min(lines.length, shown.scroll + height)
    return page(
      `${shown.row.type} of ${shown.row.group}`,
      lines.slice(shown.scroll, until),
      size,
      now,
      `? help  q quit  escape back  up down scroll  ${until} of ${lines.length} lines`,
    )
  }

  const frameOfList = (size: Size, now: number): string[] => {
    height = Math.max(1, size.rows - linesAround)
    const list = rows()
    let from = Math.max(0, list.length - height)
    let marked = -1
    if (selected !== undefined && list.length > 0) {
      marked = Math.min(placeOf(list, selected), list.length - 1)
      const stays = Math.min(Math.max(placeOf(list, top), marked - height + 1), marked)
      from = Math.min(stays, from)
      top = list[from]?.seq ?? 0
    }
    const shown = list.slice(from, from + height)
    const lines = shown.map((row, i) => lineOf(row, size.columns, from + i === marked, paint))
    const total = paused?.rows.length ?? kept.all().length
    if (list.length === 0) {
      lines.push(
        cell(
          total === 0
            ? '  No command yet. An agent’s, or npx hatchway post, will be here.'
            : '  None of them matches. c shows all again.',
          { at: 0, width: size.columns },
        ),
      )
    }
    const counts = list.length === total ? `${total}` : `${list.length} of ${total}`
    const since = paused ? kept.all().length - placeOf(kept.all(), paused.last + 1) : 0
    const pause = paused ? `  PAUSED, ${since} came since` : ''
    return page(
      `${wordsOf(filter)}: ${counts}${pause}`,
      [titlesOf(size.columns, paint), ...lines],
      size,
      now,
      '? help  q quit  up down select  enter open  g t d / filter  c clear  space pause',
    )
  }

  return {
    press(key) {
      if (key === 'ctrl-c') return 'quit'
      if (key === 'ctrl-z') return 'suspend'
      if (isHelp) {
        isHelp = false
        return key === 'q' ? 'quit' : undefined
      }
      if (typing) {
        type(key, typing)
        return undefined
      }
      if (key === 'q') return 'quit'
      if (key === '?') isHelp = true
      else if (one) pressInOne(key, one)
      else pressInList(key)
      return undefined
    },
    frame(size, now) {
      const lines = isHelp
        ? page(
            'Keys',
            help.flatMap(line => wrapped(line, size.columns)),
            size,
            now,
            'any key goes back',
          )
        : one
          ? frameOfOne(one, size, now)
          : frameOfList(size, now)
      return lines.length <= size.rows
        ? lines
        : [...lines.slice(0, Math.max(0, size.rows - 1)), ...lines.slice(-1)].slice(0, size.rows)
    },
    tell(seq, answer) {
      if (one?.row.seq !== seq) return
      const row = kept.all().find(candidate => candidate.seq === seq) ?? one.row
      one =
        'failure' in answer
          ? { ...one, row, failure: answer.failure }
          : { ...one, row, whole: answer, failure: undefined }
    },
    opened: () => one?.row.seq,
    say(text, now) {
      notice = { text, until: now + noticeMs }
    },
  }
}
