import type { RunInput } from '@hatchway/protocol'
import { expect, test } from 'vitest'
import { takeTurns } from './turns.ts'

const said = (text: string): RunInput => ({
  id: text,
  text,
  sender: 'a',
  sender_name: 'Ann',
  timestamp: '2026-01-31T09:30:00Z',
})

function opened() {
  const turns: { texts: string[]; end: () => void }[] = []
  let ends = 0
  const session = takeTurns(
    inputs =>
      new Promise<void>(resolve => {
        turns.push({ texts: inputs.map(({ text }) => text), end: resolve })
      }),
    () => {
      ends++
    },
  )
  return { session, turns, ends: () => ends, texts: () => turns.map(({ texts }) => texts) }
}
const later = () => new Promise(resolve => setImmediate(resolve))

test('what comes while a turn runs is the next turn’s, all of it', async () => {
  const { session, turns, texts } = opened()
  session.feed([said('one'), said('two')])
  session.feed([said('three')])
  session.feed([said('four')])
  expect(texts()).toEqual([['one', 'two']])
  turns[0]?.end()
  await later()
  expect(texts()).toEqual([
    ['one', 'two'],
    ['three', 'four'],
  ])
})

test('finishing waits for the turn that runs and begins no other', async () => {
  const { session, turns, texts, ends } = opened()
  session.feed([said('one')])
  session.feed([said('two')])
  const finished = session.finish()
  session.feed([said('three')])
  await later()
  expect(ends()).toBe(0)
  turns[0]?.end()
  await finished
  await session.ended
  expect(texts()).toEqual([['one']])
  expect(ends()).toBe(1)
})

test('closing does not wait', async () => {
  const { session, ends } = opened()
  session.feed([said('one')])
  await session.close()
  await session.ended
  expect(ends()).toBe(1)
})
