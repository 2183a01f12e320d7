import type { CommandAnswer } from '@hatchway/host/api'
import stringWidth from 'string-width'
import { describe, expect, test, vi } from 'vitest'
import { wrapped } from '../width.ts'
import { cell, painter } from './cells.ts'
import { commandDetails } from './details.ts'
import { everything, matches, nextDecision } from './filter.ts'
import type { HostState } from './header.ts'
import { createKeys, type Key } from './keys.ts'
import { rowOf } from './row.ts'
import { createRowBuffer } from './row-buffer.ts'
import { changesOf } from './screen.ts'
import { createView, type View } from './view.ts'

const command = (seq: number, rest: Partial<CommandAnswer> = {}): CommandAnswer => ({
  seq,
  group: 'family',
  directory: 'tasks',
  file: `${seq}.json`,
  dialect: 'hatchway',
  type: 'send_message',
  request_id: `request-${seq}`,
  outcome: { ok: true, result: {} },
  received_at: '2026-01-31T12:00:00.123Z',
  took_us: 400,
  ...rest,
})
const refused = (seq: number, message: string, rest: Partial<CommandAnswer> = {}) =>
  command(seq, { outcome: { ok: false, error: { code: 'unknown_type', message } }, ...rest })

const size = { columns: 130, rows: 14 }
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is them that are taken out
const sequences = /\u001b\[[\d;]*[mG]/g
const plain = (lines: readonly string[]) => lines.map(line => line.replace(sequences, '').trimEnd())

function open(commands: readonly CommandAnswer[] = [], filter = {}) {
  const rows = createRowBuffer(1000)
  for (const each of commands) rows.add(rowOf(each))
  const host: HostState = {
    data: '/srv/hatchway',
    connection: 'live',
    since: 0,
    heardAt: 0,
    seconds: [10, 20],
    overview: null,
  }
  const opened: number[] = []
  const view = createView({ rows, host, paint: painter(true), filter, open: seq => opened.push(seq) })
  const shown = () => plain(view.frame(size, 1000))
  return { rows, host, view, opened, shown }
}
const press = (view: View, ...keys: Key[]) => keys.map(key => view.press(key)).at(-1)
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => refused(from + i, `number ${from + i}.`))
const numbersOf = (lines: readonly string[]) =>
  lines.flatMap(line => /number (\d+)\./.exec(line)?.[1] ?? []).map(Number)

describe('a filter', () => {
  const row = rowOf(refused(7, 'The text is MISSING.', { group: 'family', type: 'send_message' }))

  test.each([
    [{}, true],
    [{ group: 'FAM' }, true],
    [{ group: '=fam' }, false],
    [{ group: '=family' }, true],
    [{ type: 'message' }, true],
    [{ type: 'task' }, false],
    [{ decision: 'refused' }, true],
    [{ decision: 'ok' }, false],
    [{ text: 'missing' }, true],
    [{ text: 'request-7' }, true],
    [{ text: 'tasks/7.json' }, true],
    [{ text: 'unknown_t' }, true],
    [{ text: '[.*' }, false],
    [{ group: 'family', decision: 'open' }, false],
  ] as const)('%j: %s', (filter, expected) => {
    expect(matches(row, { ...everything, ...filter })).toBe(expected)
  })

  test('cycles through the decisions', () => {
    const seen = ['all' as const].map(nextDecision)
    while (seen.at(-1) !== 'all') seen.push(nextDecision(seen.at(-1) ?? 'all'))
    expect(seen).toEqual(['ok', 'refused', 'open', 'all'])
  })
})

describe('the row buffer', () => {
  test('are the latest, in order, each once, whatever order they come in', () => {
    const rows = createRowBuffer(100)
    for (let seq = 1; seq <= 5000; seq++) rows.add(rowOf(command(seq)))
    for (const seq of [4990, 4950, 5001, 5000]) rows.add(rowOf(command(seq)))
    expect(rows.all().map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, i) => 4902 + i))
    expect(rows.last()).toBe(5001)
  })

  test('learns of the answer that followed, and of what is still open', () => {
    const rows = createRowBuffer(100)
    rows.add(rowOf(command(1, { outcome: null, repeated: true })))
    rows.add(rowOf(command(2, { outcome: null })))
    expect(rows.oldestOpen()).toBe(1)
    rows.add(rowOf(command(1)))
    expect(rows.all()[0]).toMatchObject({ decision: 'ok', repeated: true })
    expect(rows.oldestOpen()).toBe(2)
  })

  test('is small, however long the reason of a refusal is', () => {
    expect(rowOf(refused(1, 'x'.repeat(100_000))).message.length).toBeLessThan(1100)
  })
})

describe('keys', () => {
  const read = (...pieces: string[]) => {
    const keys: Key[] = []
    const reader = createKeys(key => keys.push(key))
    for (const piece of pieces) reader.take(piece)
    reader.end()
    return keys
  }

  test('are recognised, in whatever pieces they arrive', () => {
    expect(read('g\u001b[A\u001b[5~é👩\r')).toEqual(['g', 'up', 'page up', 'é', '👩', 'enter'])
    expect(read('\u001b', '[', 'B', '\u001b[', '6~')).toEqual(['down', 'page down'])
  })

  test('without a name do nothing', () => {
    expect(read('\u001b[15~\u001b[1;5C\u0001\u001b[<0;1;1Mx')).toEqual(['x'])
  })

  test('Escape is one when nothing follows', async () => {
    const keys: Key[] = []
    createKeys(key => keys.push(key)).take('\u001b')
    expect(keys).toEqual([])
    await vi.waitFor(() => expect(keys).toEqual(['escape']))
  })
})

describe('a cell', () => {
  test.each([
    'short',
    'much longer than there is room for',
    '日本語の名前はとても長いです',
    '👩‍🚀👩‍🚀',
    'a\u001b[2Jb\nc',
  ])('has its width, whatever is in it: %j', text => {
    const shown = cell(text, { at: 3, width: 9 })
    expect(stringWidth(shown)).toBe(9)
    expect(shown.replace(sequences, '')).not.toMatch(/\p{Cc}/u)
  })

  test('sets the cursor behind characters whose width depends on the terminal', () => {
    expect(cell('日本', { at: 3, width: 9 })).toBe('日本     \u001b[13G')
    expect(cell('ab', { at: 3, width: 4, right: true })).toBe('  ab')
  })

  test('lines are broken where they are full', () => {
    expect(wrapped('abcdefgh', 3)).toEqual(['abc', 'def', 'gh'])
    expect(wrapped('', 3)).toEqual([''])
    expect(wrapped('日本語', 4)).toEqual(['日本', '語'])
    expect(wrapped('\u001b[2J', 100)).toEqual(['\\u001b[2J'])
  })
})

describe('the list', () => {
  test.each([20, 40, 60, 80, 100, 200])('has lines that fit in %d columns, and fills the screen', columns => {
    const { view } = open([...numbered(1, 30), command(31, { type: '日本語👩‍🚀の名前\u001b[2J' })])
    for (const rows of [1, 2, 3, 5, 24]) {
      const lines = view.frame({ columns, rows }, 1000)
      expect(lines).toHaveLength(rows)
      for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(columns)
    }
  })

  test('shows the state of the host, also when it does not respond', () => {
    const { view, host, shown } = open()
    expect(shown()[0]).toBe('hatchway: running  15.0/s  /srv/hatchway')
    expect(plain(view.frame(size, 9000))[0]).toContain('no response for 9 s')
    host.connection = 'gone'
    expect(plain(view.frame(size, 3000))[0]).toBe('hatchway: no daemon for 3 s, reconnecting…  /srv/hatchway')
    expect(shown()[3]).toContain('No commands yet')
  })

  test('follows the newest until one is selected, which then stays where it is', () => {
    const { rows, view, shown } = open(numbered(1, 30))
    expect(numbersOf(shown())).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30])
    press(view, 'up', 'k', 'k')
    const before = shown()
    expect(before.find(line => line.startsWith('>'))).toContain('number 28.')
    for (const each of numbered(31, 60)) rows.add(rowOf(each))
    expect(shown().slice(2)).toEqual(before.slice(2))
    press(view, 'escape')
    expect(numbersOf(shown()).at(-1)).toBe(60)
    press(view, 'home')
    expect(numbersOf(shown())[0]).toBe(1)
    press(view, 'page down', 'j')
    expect(shown().find(line => line.startsWith('>'))).toContain('number 12.')
    press(view, 'end')
    expect(shown().find(line => line.startsWith('>'))).toBeUndefined()
  })

  test('continues when the selected command is no longer kept', () => {
    const { rows, view, shown } = open(numbered(1, 30))
    press(view, 'home')
    for (const each of numbered(31, 2000)) rows.add(rowOf(each))
    expect(shown().find(line => line.startsWith('>'))).toContain('number 1001.')
    press(view, 'down')
    expect(shown().find(line => line.startsWith('>'))).toContain('number 1002.')
  })

  test('is filtered while you type; Escape discards the filter', () => {
    const { view, opened, shown } = open(numbered(1, 30))
    press(view, '/', ...'number 3')
    expect(numbersOf(shown())).toEqual([3, 30])
    expect(shown().at(-1)).toBe('text: number 3_')
    press(view, 'backspace', '2', 'enter')
    expect(shown()[1]).toBe('text contains “number 2”: 11 of 30')
    press(view, '/', 'q', '\u202e')
    expect(shown()[3]).toContain('No command matches')
    press(view, 'escape')
    expect(shown()[1]).toBe('text contains “number 2”: 11 of 30')
    press(view, 'c')
    expect(shown()[1]).toBe('all commands: 30')
    expect(opened).toEqual([])
  })

  test('does not change while it is paused, and can be filtered', () => {
    const { rows, view, shown } = open(numbered(1, 3))
    press(view, ' ')
    for (const each of numbered(4, 6)) rows.add(rowOf(each))
    expect(shown()[1]).toBe('all commands: 3  PAUSED, 3 new')
    press(view, '/', '5', 'enter')
    expect(numbersOf(shown())).toEqual([])
    press(view, ' ')
    expect(numbersOf(shown())).toEqual([5])
  })

  test('q and Ctrl-C quit, but letters of a filter do not', () => {
    const { view } = open()
    expect(press(view, 'g', 'q')).toBeUndefined()
    expect(press(view, 'ctrl-c')).toBe('quit')
    expect(press(view, 'enter', 'q')).toBe('quit')
    expect(press(view, '?', 'q')).toBe('quit')
  })

  test('without colours there are none', () => {
    const rows = createRowBuffer(10)
    rows.add(rowOf(refused(1, 'no')))
    const { host } = open()
    const view = createView({ rows, host, paint: painter(false), open: () => {} })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are written with them
    expect(view.frame(size, 1000).join('')).not.toMatch(/\u001b\[3\dm/)
  })
})

describe('one command', () => {
  const whole = {
    ...refused(3, 'no'),
    content: { text: '{"a":\r\n"\u001b[2J日本"}', truncated: false },
    sender: { group: 'family', dialect: 'hatchway' as const, main: true },
    steps: [{ name: 'written' as const, at: '2026-01-31T12:00:00.100Z', note: 'tasks/\u001b[2J.json' }],
    audit: [],
    error_id: '3',
  }

  test('opens with what is known, and gets the rest later', () => {
    const { view, opened, shown } = open(numbered(1, 3))
    press(view, 'enter')
    expect(opened).toEqual([3])
    expect(view.opened()).toBe(3)
    expect(shown().join('\n')).toContain('asking the daemon')
    view.setDetails(2, whole)
    expect(shown().join('\n')).toContain('asking the daemon')
    view.setDetails(3, whole)
    press(view, 'end')
    expect(shown()).toContain('│ "\\u001b[2J日本"}')
    press(view, 'home')
    expect(shown()).toContain('command   3')
    press(view, 'escape')
    expect(view.opened()).toBeUndefined()
    expect(shown().find(line => line.startsWith('>'))).toContain('number 3.')
  })

  test('has lines that fit, without any control character', () => {
    for (const columns of [20, 40, 100]) {
      const lines = commandDetails(
        rowOf(whole),
        { ...whole, content: { text: '語'.repeat(500), truncated: true } },
        columns,
      )
      for (const line of lines) {
        expect(stringWidth(line)).toBeLessThanOrEqual(columns)
        expect(line).not.toMatch(/\p{Cc}/u)
      }
    }
  })

  test('with a huge file shows only its start', () => {
    const begun = commandDetails(
      rowOf(whole),
      { ...whole, content: { text: 'x'.repeat(10_000_000), truncated: false } },
      80,
    )
    expect(begun.length).toBeLessThan(1000)
    expect(begun).toContain('file as received (only the start)')
  })
})

test('only lines that changed are written', () => {
  expect(changesOf(['a', 'b', 'c'], ['a', 'B', 'c'])).toBe('\u001b[2;1H\u001b[2KB')
  expect(changesOf(['a', 'b'], ['a', 'b'])).toBe('')
  expect(changesOf(['a', 'b'], ['a'])).toBe('\u001b[2;1H\u001b[2K')
  expect(changesOf([], ['', 'b'])).toBe('\u001b[2;1H\u001b[2Kb')
})
