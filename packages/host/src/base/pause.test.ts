import { expect, test } from 'vitest'
import { abortable, pause, until, within } from './pause.ts'

const never = new Promise<void>(() => {})
const hour = 3_600_000

test('a pause ends with its time, or with its signal', async () => {
  await pause(1)
  const stop = new AbortController()
  const pausing = pause(hour, stop.signal)
  stop.abort()
  await pausing
  await pause(hour, stop.signal)
})

test('whether something comes true in time', async () => {
  expect(await within(hour, Promise.resolve())).toBe(true)
  expect(await within(1, never)).toBe(false)
  await expect(within(hour, Promise.reject(new Error('no')))).rejects.toThrow('no')
  let looks = 0
  expect(await until(hour, () => ++looks === 3)).toBe(true)
  expect(await until(1, () => false)).toBe(false)
})

test('what is called off rejects with the reason, and leaves nothing unhandled', async () => {
  const stop = new AbortController()
  expect(await abortable(Promise.resolve(1), stop.signal)).toBe(1)
  const waiting = abortable(never, stop.signal)
  stop.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  await expect(abortable(Promise.reject(new Error('late')), stop.signal)).rejects.toThrow('gone')
})
