import { expect, onTestFinished, test, vi } from 'vitest'
import { createPace } from './pace.ts'

const begin = (...given: Parameters<typeof createPace>[0]['limit'][]) => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const [limit] = given
  const pace = createPace({ ...(limit && { limit }), now: Date.now })
  const closing = new AbortController()
  const turns: string[] = []
  /** as the outbox does: the next turn is asked for when the last is over */
  const chat = async (name: string, messages: number) => {
    for (let i = 0; i < messages; i++) {
      await pace.turn(closing.signal)
      if (closing.signal.aborted) return
      turns.push(name)
    }
  }
  return { pace, closing, turns, chat }
}

test('an account says no more than it may, and its chats take turns', async () => {
  const { pace, turns, chat } = begin({ messages: 4, perMs: 1000 })
  const chats = [chat('a', 8), chat('b', 2), chat('c', 2)]
  await vi.advanceTimersByTimeAsync(0)
  expect(turns).toHaveLength(4)
  expect(pace.status()).toEqual({ limit: { messages: 4, perMs: 1000 }, waiting: chats.length })
  await vi.advanceTimersByTimeAsync(1000)
  expect(turns).toHaveLength(8)
  // The two that have little to say have said it by then, however much there is of the other.
  expect(turns.toSorted().join('')).toBe('aaaabbcc')
  await vi.advanceTimersByTimeAsync(1000)
  await Promise.all(chats)
  expect(turns).toHaveLength(12)
  expect(pace.status().waiting).toBe(0)
})

test('what the platform asks the account to wait holds all of its chats, and nothing else does where there is no limit', async () => {
  const { pace, turns, chat } = begin()
  await chat('a', 100)
  pace.hold(500)
  const chats = [chat('a', 1), chat('b', 1)]
  await vi.advanceTimersByTimeAsync(499)
  expect(turns).toHaveLength(100)
  await vi.advanceTimersByTimeAsync(1)
  await Promise.all(chats)
  expect(turns.slice(100)).toEqual(['a', 'b'])
  // A server may say anything; a timer takes 24 days at most.
  pace.hold(Number.POSITIVE_INFINITY)
  const late = chat('late', 1)
  await vi.advanceTimersByTimeAsync(3_600_000)
  await late
  expect(turns.at(-1)).toBe('late')
})

test('parts that nobody asked for count, and whoever stops waits for nothing', async () => {
  const { pace, closing, turns, chat } = begin({ messages: 2, perMs: 1000 })
  await chat('a', 1)
  pace.spend(3)
  const waiting = chat('b', 1)
  await vi.advanceTimersByTimeAsync(1499)
  expect(turns).toEqual(['a'])
  closing.abort()
  await waiting
  expect(turns).toEqual(['a'])
  expect(pace.status().waiting).toBe(0)
})
