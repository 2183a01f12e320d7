import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { createThread, type ThreadOptions } from './thread.ts'

const open = (options: Omit<ThreadOptions, 'file'> = {}) => {
  const threads: Worker[] = []
  const note = (thread: Worker) => void threads.push(thread)
  process.on('worker', note)
  const thread = createThread<string, string | number>({
    file: new URL('./testing/thread.ts', import.meta.url),
    ...options,
  })
  onTestFinished(async () => {
    process.off('worker', note)
    await thread.close()
  })
  return { thread, threads }
}

test('there is none until somebody asks, and the same one answers the next question', async () => {
  const { thread, threads } = open()
  expect(threads).toHaveLength(0)
  const first = await thread.ask('hello')
  expect(await thread.ask('hello')).toBe(first)
  expect(threads).toHaveLength(1)
})

test('one that is idle for long enough ends, and the next question starts another', async () => {
  const { thread, threads } = open({ idleMs: 1 })
  for (let count = 1; count <= 3; count++) {
    await thread.ask('hello')
    expect(threads).toHaveLength(count)
    const last = threads.at(-1)
    if (last) await once(last, 'exit')
  }
})

test('one that takes too long is ended and replaced', async () => {
  const { thread, threads } = open({ limitMs: 100 })
  await expect(thread.ask('busy')).rejects.toMatchObject({ why: 'too_slow' })
  expect(await thread.ask('hello')).toBe(threads[1]?.threadId)
})

test('one that ends by itself fails its question, and the next one is answered', async () => {
  const { thread } = open({ memoryMb: 32 })
  await expect(thread.ask('exit')).rejects.toMatchObject({ why: 'ended' })
  await expect(thread.ask('throw')).rejects.toMatchObject({ why: 'ended', message: 'thrown' })
  await expect(thread.ask('memory')).rejects.toMatchObject({ why: 'ended' })
  expect(await thread.ask('hello')).toBeTypeOf('number')
})

test('one that cannot begin says why', async () => {
  const { thread } = open({ workerData: 'broken' })
  await expect(thread.ask('hello')).rejects.toMatchObject({ why: 'not_started', message: 'cannot begin' })
  const slow = open({ startMs: 0 })
  await expect(slow.thread.ask('hello')).rejects.toMatchObject({ why: 'not_started' })
})

test('whoever gives up is rejected at once, and the thread is replaced', async () => {
  const { thread, threads } = open()
  await thread.ask('hello')
  const leaving = new AbortController()
  const busy = thread.ask('busy', leaving.signal)
  await new Promise(resolve => setImmediate(resolve))
  leaving.abort(new Error('gone'))
  await expect(busy).rejects.toThrow('gone')
  await expect(thread.ask('hello', leaving.signal)).rejects.toThrow('gone')
  expect(await thread.ask('hello')).toBe(threads[1]?.threadId)
})

test('after so many questions it is replaced', async () => {
  const { thread, threads } = open({ questions: 2 })
  for (let i = 0; i < 5; i++) await thread.ask('hello')
  expect(threads).toHaveLength(3)
})

test('it sees nothing of the environment', async () => {
  expect(await open().thread.ask('environment')).toBe(0)
})

test('closing ends what is at work', async () => {
  const { thread } = open()
  await thread.ask('hello')
  const busy = thread.ask('busy')
  const failed = expect(busy).rejects.toMatchObject({ why: 'closed' })
  await new Promise(resolve => setImmediate(resolve))
  await thread.close()
  await failed
  await expect(thread.ask('hello')).rejects.toMatchObject({ why: 'closed' })
})

test('a polite one answers first, and puts away what it has open', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-thread-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'ended')
  const { thread } = open({ endsPolitely: true, workerData: file })
  const answer = thread.ask('hello')
  await thread.close()
  expect(await answer).toBeTypeOf('number')
  expect(readFileSync(file, 'utf8')).toBe('ended')
})
