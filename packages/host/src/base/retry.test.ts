import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../testing/src/until.ts'
import { backoff, createRetries } from './retry.ts'
import { StoreFailure } from './storage-failure.ts'

function open() {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: line => void lines.push(JSON.parse(line).msg) })
  const retries = createRetries({ log, now: Date.now })
  onTestFinished(() => retries.stop())
  return { retries, lines }
}

const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

test('work is done at once where nothing fails', () => {
  const { retries, lines } = open()
  let done = 0
  retries.inBackground('counting', () => done++)
  expect(done).toBe(1)
  expect(retries.problem()).toBe(undefined)
  expect(lines).toEqual([])
})

test('what the disk or the database keeps from happening is tried until it happens, and said once', async () => {
  const { retries, lines } = open()
  let isFull = true
  const work = (failure: () => Error) => () => {
    if (isFull) throw failure()
    return 'stored'
  }
  const both = Promise.all([
    retries.untilStored('one', work(noSpace)),
    retries.untilStored(
      'two',
      work(() => new StoreFailure('database or disk is full')),
    ),
  ])
  await sleep(400)
  expect(retries.problem()).toContain('no space left on device')
  // Somebody else's small commit does not make it well.
  retries.succeeded()
  isFull = false
  expect(await both).toEqual(['stored', 'stored'])
  await until('all is well', () => retries.problem() === undefined)
  expect(lines).toEqual([
    'the data directory cannot be written; what fails is tried again',
    'the data directory can be written again',
  ])
})

test('what is wrong with the work itself is not tried again', async () => {
  const { retries, lines } = open()
  await expect(retries.untilStored('one', () => Promise.reject(new TypeError('a fault')))).rejects.toThrow(
    'a fault',
  )
  retries.inBackground('two', () => {
    throw new TypeError('a fault')
  })
  await until('it is logged', () => lines.length > 0)
  expect(lines).toEqual(['two failed'])
  expect(retries.problem()).toBe(undefined)
})

test('a host that stops does not wait for room', async () => {
  const { retries } = open()
  const stored = retries.untilStored('one', () => Promise.reject(noSpace()))
  retries.stop()
  await expect(stored).rejects.toThrow('ENOSPC')
  await expect(retries.untilStored('one', () => Promise.reject(noSpace()))).rejects.toThrow('ENOSPC')
})

test('pauses grow by a factor, up to the longest', () => {
  const pauses = (after: (failures: number) => number) => [1, 2, 3, 4, 5].map(after)
  expect(pauses(backoff({ firstMs: 100, longestMs: 1000 }))).toEqual([100, 200, 400, 800, 1000])
  expect(pauses(backoff({ firstMs: 1, longestMs: 100, factor: 4 }))).toEqual([1, 4, 16, 64, 100])
  expect(backoff({ firstMs: 1, longestMs: 5 })(10_000)).toBe(5)
})
