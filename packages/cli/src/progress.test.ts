import { PassThrough } from 'node:stream'
import { WriteStream } from 'node:tty'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withProgress } from './progress.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Like standard error, without a terminal behind it. */
function output(isTTY: boolean) {
  const through = new PassThrough()
  let written = ''
  through.on('data', part => {
    written += part
  })
  const stream: WriteStream = Object.assign(Object.create(WriteStream.prototype), {
    isTTY,
    columns: 40,
    write: (text: string) => through.write(text),
  })
  return { stream, written: () => written }
}

test('long work is shown on one line, which disappears at the end', async () => {
  const { stream, written } = output(true)
  const answer = await withProgress(
    'Working',
    async say => {
      await vi.advanceTimersByTimeAsync(900)
      expect(written()).toBe('')
      await vi.advanceTimersByTimeAsync(300)
      expect(written()).toBe('\r\u001b[KWorking, 1 s')
      say(`Working: ${'x'.repeat(100)}`)
      await vi.advanceTimersByTimeAsync(300)
      return 42
    },
    stream,
  )
  expect(answer).toBe(42)
  const lines = written().split('\r\u001b[K')
  expect(lines.at(-1)).toBe('')
  expect(lines.at(-2)).toMatch(/^Working: x{30}$/)
})

test('work that fails leaves no line behind', async () => {
  const { stream, written } = output(true)
  const work = withProgress(
    'Working',
    async () => {
      await vi.advanceTimersByTimeAsync(2000)
      throw new Error('no')
    },
    stream,
  )
  await expect(work).rejects.toThrow('no')
  expect(written().endsWith('\r\u001b[K')).toBe(true)
})

test('an empty text removes the line, so that something can be printed', async () => {
  const { stream, written } = output(true)
  await withProgress(
    'Working',
    async say => {
      await vi.advanceTimersByTimeAsync(1200)
      say('')
      expect(written().endsWith('1 s\r\u001b[K')).toBe(true)
      const before = written()
      await vi.advanceTimersByTimeAsync(2000)
      expect(written()).toBe(before)
    },
    stream,
  )
})

test('nothing is written without a terminal, or for quick work', async () => {
  const { stream, written } = output(false)
  await withProgress('Working', () => vi.advanceTimersByTimeAsync(5000), stream)
  expect(written()).toBe('')
  const terminal = output(true)
  await withProgress('Working', () => vi.advanceTimersByTimeAsync(900), terminal.stream)
  expect(terminal.written()).toBe('')
})
