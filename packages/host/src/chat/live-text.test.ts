import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLiveTexts, type LiveTextChange, longestLiveText } from './live-text.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const main = { folder: 'main', jid: 'chat:main' }
const family = { folder: 'family', jid: 'chat:family' }

/** Live texts, and what somebody sees who has heard every change. */
function open(mayShow: () => boolean = () => true) {
  const seen = new Map<string, string>()
  const changes: LiveTextChange[] = []
  const texts = createLiveTexts({
    mayShow,
    show(change) {
      changes.push(change)
      seen.set(change.jid, (seen.get(change.jid) ?? '').slice(0, change.from) + change.text)
    },
  })
  return { texts, changes, seen: (jid = main.jid) => seen.get(jid) ?? '' }
}

test('words are shown together, a few times a second, and each only once', () => {
  const { texts, changes, seen } = open()
  for (let i = 0; i < 1000; i++) {
    texts.grow(main, `${i} `)
    vi.advanceTimersByTime(2)
  }
  vi.advanceTimersByTime(250)
  expect(seen()).toBe(Array.from({ length: 1000 }, (_, i) => `${i} `).join(''))
  expect(changes.length).toBeLessThanOrEqual(10)
  expect(changes.map(({ text }) => text).join('')).toBe(seen())
  expect(texts.of('main', 'chat:main')).toBe(seen())
  expect(texts.all()).toEqual([{ jid: 'chat:main', text: seen(), tool: null }])
})

test('what comes after a tool is another text', () => {
  const { texts, seen, changes } = open()
  texts.grow(main, 'Let me look.')
  vi.advanceTimersByTime(250)
  texts.uses(main, 'mcp__calendar__list_events')
  vi.advanceTimersByTime(1000)
  expect(seen()).toBe('Let me look.')
  expect(texts.all()).toEqual([{ jid: 'chat:main', text: 'Let me look.', tool: 'list events' }])
  expect(texts.of('main', 'chat:main')).toBeUndefined()
  texts.grow(main, '\n\n')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('Let me look.')
  texts.grow(main, 'It rains.')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('It rains.')
  expect(changes.at(-1)).toMatchObject({ from: 0, tool: null })
})

test('the tool in use is shown as often as words are, and taken away with them', () => {
  const { texts, seen, changes } = open()
  for (let i = 0; i < 1000; i++) texts.uses(main, `tool_${i}\n\u001b[31m`)
  vi.advanceTimersByTime(250)
  expect(changes).toEqual([{ jid: 'chat:main', from: 0, text: '', tool: expect.stringMatching(/^tool 999/) }])
  texts.over('main')
  vi.advanceTimersByTime(10_000)
  expect(changes.at(-1)).toEqual({ jid: 'chat:main', from: 0, text: '', tool: null })
  expect(seen()).toBe('')
})

test('it is over when the answer is delivered, or does not come', () => {
  const { texts, seen } = open()
  texts.grow(main, 'one')
  texts.grow(family, 'two')
  vi.advanceTimersByTime(250)
  // Said in the middle of a turn, it is not the answer.
  texts.said('chat:main')
  expect(seen()).toBe('one')
  texts.over('main')
  texts.over('family')
  expect([seen(), seen('chat:family')]).toEqual(['one', 'two'])
  texts.said('chat:main')
  expect([seen(), seen('chat:family')]).toEqual(['', 'two'])
  vi.advanceTimersByTime(10_000)
  expect(seen('chat:family')).toBe('')
  expect(texts.all()).toEqual([])
  texts.grow(main, 'the next turn')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('the next turn')
})

test('what was broken off is taken away, too, when nothing comes after it', () => {
  const { texts, seen } = open()
  texts.grow(main, 'Let me look.')
  vi.advanceTimersByTime(250)
  texts.uses(main, 'mcp__calendar__list_events')
  texts.grow(main, 'It')
  texts.over('main')
  texts.said('chat:main')
  expect(seen()).toBe('')
})

test('a turn has so many characters, whatever is hidden or broken off of them; the next has as many again', () => {
  const { texts, seen } = open()
  texts.grow(main, 'x'.repeat(longestLiveText - 10))
  texts.uses(main, 'mcp__calendar__list_events')
  texts.grow(main, 'short')
  // Too long, with the beginning of what is hidden in it: nothing may follow.
  texts.grow(main, 'too long<internal>')
  texts.grow(main, 'hid')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('short')
  texts.over('main')
  texts.grow(main, 'again')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('again')
})

test('hidden parts are never shown, nor anything where it may not be shown any more', () => {
  let may = true
  const { texts, seen, changes } = open(() => may)
  for (const piece of ['Hi<inte', 'rnal>secret</inter', 'nal> there<internal>never closed'])
    texts.grow(main, piece)
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('Hi there')
  may = false
  texts.grow(main, '</internal>more')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('')
  may = true
  texts.grow(main, 'and more')
  vi.advanceTimersByTime(250)
  expect(seen()).toBe('')
  expect(JSON.stringify(changes)).not.toMatch(/secret|never/)
})

test('it is that of its own chat alone, and of none once it may not be shown there', () => {
  let may = true
  const { texts } = open(() => may)
  texts.grow(main, 'hello')
  vi.advanceTimersByTime(250)
  expect([texts.of('main', 'chat:main'), texts.of('main', 'chat:family')]).toEqual(['hello', undefined])
  may = false
  expect(texts.of('main', 'chat:main')).toBeUndefined()
})
