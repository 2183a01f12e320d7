import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLifecycle } from './lifecycle.ts'
import type { SessionParts } from './parts.ts'
import type { SessionState } from './types.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** The lifecycle alone, with an agent that can be asked anything and does nothing. */
const openLifecycle = () => {
  const seen: SessionState[] = []
  const faults: object[] = []
  const killed: string[] = []
  const asked: string[] = []
  const ask = (what: string) => () => {
    asked.push(what)
    return () => {}
  }
  const parts = {
    options: {
      input: { close: () => asked.push('close'), interrupt: ask('interrupt'), stop: ask('stop') },
      limits: { idleMs: 1000, runMs: 5000, closeMs: 500 },
      protocol: { mayGoOn: false },
      log: { warn() {}, error: (about: object) => faults.push(about) },
    },
    sandbox: {
      isGone: () => false,
      killedBecause: () => killed[0],
      kill: (reason: string) => killed.push(reason),
    },
    calls: {
      changed: (state: SessionState) => seen.push(state),
      waitsForPeople: () => false,
      turnStopped() {},
      cutOff() {},
      hasRoom() {},
    },
    transcript: { add() {} },
    about: { group: 'family', run: 'r-1' },
    isTask: false,
    isCutOff: () => false,
  } as unknown as SessionParts
  return { lifecycle: createLifecycle(parts), seen, faults, killed, asked }
}

test('a session that was asked to finish does not begin to work again', () => {
  const { lifecycle, seen, faults, killed } = openLifecycle()
  lifecycle.enter('working')
  lifecycle.close()
  lifecycle.enter('working')
  lifecycle.enter('idle')
  expect(lifecycle.state()).toBe('closing')
  expect(seen).toEqual(['closing'])
  expect(faults).toMatchObject([
    { state: 'closing', next: 'working', run: 'r-1' },
    { state: 'closing', next: 'idle' },
  ])
  // Its alarm is still the one of a session that closes.
  vi.advanceTimersByTime(500)
  expect(killed).toHaveLength(1)
})

test('a session that has ended stays ended, without an alarm', () => {
  const { lifecycle, faults, killed, asked } = openLifecycle()
  lifecycle.enter('working')
  lifecycle.enter('ended')
  lifecycle.close()
  lifecycle.enter('working')
  vi.advanceTimersByTime(60_000)
  expect(lifecycle.state()).toBe('ended')
  expect({ killed, asked }).toEqual({ killed: [], asked: [] })
  expect(faults).toHaveLength(1)
})

test('a stopped turn ends idle, and the session takes follow-ups again', () => {
  const { lifecycle, seen, faults } = openLifecycle()
  lifecycle.enter('working')
  lifecycle.stopTurn('ada')
  lifecycle.turnEnded()
  lifecycle.enter('working')
  expect(seen).toEqual(['stopping', 'idle', 'working'])
  expect(faults).toEqual([])
})
