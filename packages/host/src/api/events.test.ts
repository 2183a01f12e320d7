import { expect, test } from 'vitest'
import type { CommandEvent } from '../store/types.ts'
import { type EventAnswer, eventAnswer } from './answers.ts'
import { eventStream } from './events.ts'

const event = (seq: number, group = 'family'): CommandEvent => ({
  seq,
  group,
  file: `${seq}.json`,
  dialect: 'hatchway',
  type: 'send_message',
  requestId: null,
  outcome: { ok: true, result: {} },
  receivedAt: 0,
  tookUs: 100,
  waitedMs: 0,
  repeated: false,
})

function eventSource() {
  const listeners = new Set<(event: CommandEvent) => void>()
  return {
    listeners,
    emit: (event: CommandEvent) => {
      for (const listener of listeners) listener(event)
    },
    subscribe: (listener: (event: CommandEvent) => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

const defaults = { heartbeatMs: 1_000_000, bufferBytes: 100_000 }

async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<EventAnswer | undefined> {
  const { value } = await reader.read()
  return value && eventAnswer.parse(JSON.parse(new TextDecoder().decode(value)))
}

test('begins with a heartbeat and goes on with commands', async () => {
  const host = eventSource()
  const reader = eventStream(host, { ...defaults, signal: new AbortController().signal }).getReader()
  host.emit(event(1))
  expect(await next(reader)).toMatchObject({ kind: 'heartbeat' })
  expect(await next(reader)).toMatchObject({
    kind: 'command',
    command: { seq: 1, took_us: 100, waited_ms: 0 },
  })
})

test('heartbeats come while nothing happens', async () => {
  const reader = eventStream(eventSource(), {
    ...defaults,
    heartbeatMs: 5,
    signal: new AbortController().signal,
  }).getReader()
  for (let i = 0; i < 3; i++) expect(await next(reader)).toMatchObject({ kind: 'heartbeat' })
  await reader.cancel()
})

test('shows one group’s commands where one is asked for', async () => {
  const host = eventSource()
  const reader = eventStream(host, {
    ...defaults,
    group: 'b',
    signal: new AbortController().signal,
  }).getReader()
  host.emit(event(1, 'a'))
  host.emit(event(2, 'b'))
  await next(reader)
  expect(await next(reader)).toMatchObject({ command: { seq: 2 } })
})

test('a reader that does not keep up misses commands, is told how many, and costs no memory', async () => {
  const host = eventSource()
  const stream = eventStream(host, { ...defaults, bufferBytes: 2000, signal: new AbortController().signal })
  for (let seq = 1; seq <= 10_000; seq++) host.emit(event(seq))
  const reader = stream.getReader()
  await next(reader)
  let seen = 0
  let kept = 0
  while (seen < 10_000) {
    host.emit(event(10_001))
    const answer = await next(reader)
    if (answer?.kind === 'command' && answer.command.seq <= 10_000) {
      kept++
      seen++
      expect(answer.command.seq).toBe(kept)
    }
    if (answer?.kind === 'dropped') seen += answer.count
  }
  expect(kept).toBeLessThan(20)
  await reader.cancel()
})

test('a reader that leaves is forgotten', async () => {
  const host = eventSource()
  const reader = eventStream(host, { ...defaults, signal: new AbortController().signal }).getReader()
  await next(reader)
  expect(host.listeners.size).toBe(1)
  await reader.cancel()
  expect(host.listeners.size).toBe(0)
})

test('the end of the daemon ends the stream', async () => {
  const host = eventSource()
  const ending = new AbortController()
  const reader = eventStream(host, { ...defaults, signal: ending.signal }).getReader()
  await next(reader)
  ending.abort()
  expect(await next(reader)).toBeUndefined()
  expect(host.listeners.size).toBe(0)
})
