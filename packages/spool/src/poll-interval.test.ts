import { expect, it } from 'vitest'
import { createPollInterval } from './poll-interval.ts'

it('grows up to its maximum, and starts again at its minimum after a reset', () => {
  const interval = createPollInterval(5, 1000)
  expect(interval.ms).toBe(5)
  let last = interval.ms
  for (let i = 0; i < 50; i++) {
    interval.increase()
    expect(interval.ms).toBeGreaterThanOrEqual(last)
    last = interval.ms
  }
  expect(last).toBe(1000)
  interval.reset()
  expect(interval.ms).toBe(5)
})
