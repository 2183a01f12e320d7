import { expect, it } from 'vitest'
import { createPace } from './pace.ts'

it('slows down while nothing is found, within its bounds, and hurries when something is', () => {
  const pace = createPace(5, 1000)
  expect(pace.everyMs).toBe(5)
  let last = pace.everyMs
  for (let i = 0; i < 50; i++) {
    pace.foundNothing()
    expect(pace.everyMs).toBeGreaterThanOrEqual(last)
    last = pace.everyMs
  }
  expect(last).toBe(1000)
  pace.found()
  expect(pace.everyMs).toBe(5)
})
