import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const never = new AbortController().signal

test('one at a time, in the order of asking; others are not held up', async () => {
  const turns = createTurns()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const first = turns.take('a', never, async () => {
    await gate.promise
    order.push('first')
  })
  const second = turns.take('a', never, async () => void order.push('second'))
  await turns.take('b', never, async () => void order.push('another'))
  gate.resolve()
  await Promise.all([first, second])
  expect(order).toEqual(['another', 'first', 'second'])
})

test('whoever gives up does not run, and nobody overtakes because of it', async () => {
  const turns = createTurns()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const first = turns.take('a', never, async () => {
    await gate.promise
    order.push('first')
  })
  const leaving = new AbortController()
  const second = turns.take('a', leaving.signal, async () => void order.push('second'))
  const third = turns.take('a', never, async () => void order.push('third'))
  leaving.abort(new Error('gone'))
  await expect(second).rejects.toThrow('gone')
  gate.resolve()
  await Promise.all([first, third])
  expect(order).toEqual(['first', 'third'])
})

test('a failure gives the turn on', async () => {
  const turns = createTurns()
  await expect(turns.take('a', never, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await turns.take('a', never, async () => 1)).toBe(1)
})
