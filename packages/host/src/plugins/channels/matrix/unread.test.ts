import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createUnread } from './unread.ts'

test('what nobody can read in one room takes little room, and pushes out nothing of another', () => {
  const memory = new Map<string, string>()
  const unread = createUnread({
    memory: {
      recall: key => memory.get(key),
      remember: (key, value) => void (value === undefined ? memory.delete(key) : memory.set(key, value)),
    },
    report: () => {},
    log: pino({ level: 'silent' }),
    now: () => 1,
  })
  const add = (room: string, event_id: string, ciphertext: string) =>
    unread.add(room, { event_id, content: { ciphertext } }, '@ann:hatch.test', 'the key has not arrived')
  add('!quiet:hatch.test', '$first', 'a')
  for (let i = 0; i < 20; i++) add('!loud:hatch.test', `$${i}`, 'x'.repeat(60_000))
  for (let i = 0; i < 9; i++) add('!loud:hatch.test', `$small${i}`, 'x')
  const kept = memory.get('unreadable') ?? ''
  expect(kept.length).toBeLessThan(1_100_000)
  expect(kept).toContain('"$first"')
  expect(kept).toContain('"$small8"')
})
