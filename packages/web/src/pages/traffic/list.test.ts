import type { Command } from '@hatchway/host/api-types'
import { expect, test } from 'vitest'
import { fits, keptAtMost, merged } from './list.ts'

const command = (seq: number, more: Partial<Command> = {}): Command => ({
  seq,
  group: 'main',
  file: 'x.json',
  dialect: 'hatchway',
  type: 'send_message',
  request_id: null,
  outcome: { ok: true, result: {} },
  received_at: '2026-01-01T00:00:00.000Z',
  took_us: 1,
  ...more,
})
const seqs = (commands: readonly Command[]) => commands.map(({ seq }) => seq)

test('newest first, each once, whatever order they come in', () => {
  const known = merged([], [command(1), command(2), command(3)])
  expect(seqs(known)).toEqual([3, 2, 1])
  expect(seqs(merged(known, [command(5), command(4)]))).toEqual([5, 4, 3, 2, 1])
  expect(seqs(merged(known, [command(4), command(4), command(2)]))).toEqual([4, 3, 2, 1])
  expect(merged(known, [])).toBe(known)
})

test('an answer that follows takes the place of what was open', () => {
  const known = merged([], [command(1, { outcome: null, waited_ms: 3 }), command(2)])
  expect(merged(known, [command(1)]).at(-1)).toMatchObject({ seq: 1, outcome: { ok: true }, waited_ms: 3 })
})

test('a page that stays open keeps so many and no more', () => {
  const many = merged(
    [],
    Array.from({ length: keptAtMost }, (_, i) => command(i)),
  )
  const more = merged(many, [command(keptAtMost), command(keptAtMost + 1)])
  expect(more).toHaveLength(keptAtMost)
  expect([more[0]?.seq, more.at(-1)?.seq]).toEqual([keptAtMost + 1, 2])
})

test('filters', () => {
  const refused = command(1, { outcome: { ok: false, error: { code: 'forbidden', message: 'no' } } })
  expect(fits(refused, {})).toBe(true)
  expect(fits(refused, { decision: 'refused', group: 'main', type: 'send_message' })).toBe(true)
  expect(fits(refused, { decision: 'done' })).toBe(false)
  expect(fits(command(1, { outcome: null }), { decision: 'open' })).toBe(true)
  expect(fits(refused, { group: 'main-x' })).toBe(false)
})
