import { describe, expect, test } from 'vitest'
import { findProgram } from '../../../host/src/base/programs.ts'
import { flatness, sparkline } from './flatness.ts'
import { soak } from './soak.ts'

/** The soak of `npm run soak`, for seconds: everything in it works and is accounted for. What is flat takes longer. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

attempt(
  `a few seconds of everything are accounted for${missing === undefined ? '' : ` (needs ${missing})`}`,
  async () => {
    const { accounts, samples, sent, heard } = await soak(
      { minutes: 0.05, groups: 24, rate: 60, chats: 1, sessions: 2, seed: 7, only: [], journal: 0 },
      { signal: new AbortController().signal, progress: () => {} },
    )
    expect(accounts.filter(({ ok }) => ok !== true)).toEqual([])
    expect(samples.length).toBeGreaterThan(0)
    expect(
      Math.min(...samples.flatMap(({ rss = 0, handles = 0, watches = 0 }) => [rss, handles, watches])),
    ).toBeGreaterThan(0)
    expect(sent.reduce((sum, { messages }) => sum + messages, 0)).toBeGreaterThan(0)
    expect(heard.chats.answered).toBeGreaterThan(0)
  },
)

describe('flat', () => {
  const course = (valueAt: (place: number) => number) =>
    Array.from({ length: 80 }, (_, place) => ({ rss: valueAt(place) }))
  const memory = (valueAt: (place: number) => number) => flatness(course(valueAt))[0]

  test('is what fills up in the first quarter and stays', () => {
    expect(memory(place => 1e8 * Math.min(1, 0.2 + place / 20))?.ok).toBe(true)
  })
  test('is not what goes on growing, however slowly', () => {
    expect(memory(place => 1e8 * (1 + place / 300))?.ok).toBe(false)
  })
  test('cannot be told of what was not measured', () => {
    expect(flatness([])[0]?.ok).toBe(undefined)
  })
  test('looks flat', () => {
    expect(sparkline([5, 5, 5])).toBe('███')
    expect(sparkline([0, 4, 8])).toBe('▁▅█')
  })
})
