import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRateLimit } from './rate.ts'

test('a group starts with a minute’s worth', () => {
  const rate = createRateLimit({ perMinute: 600 })
  expect(rate.allowance('a', 0)).toBe(600)
  expect(rate.readyAt('a', 5)).toBe(5)
})

test('what was taken comes back continuously, and never more than a minute’s worth', () => {
  const rate = createRateLimit({ perMinute: 600 })
  rate.take('a', 600, 1000)
  expect(rate.allowance('a', 1000)).toBe(0)
  expect(rate.allowance('a', 1099)).toBe(0)
  expect(rate.allowance('a', 1100)).toBe(1)
  expect(rate.allowance('a', 31_000)).toBe(300)
  expect(rate.allowance('a', 61_000)).toBe(600)
  expect(rate.allowance('a', 10_000_000)).toBe(600)
})

test('one group’s flood costs another nothing', () => {
  const rate = createRateLimit({ perMinute: 60 })
  rate.take('a', 60, 0)
  expect(rate.allowance('a', 0)).toBe(0)
  expect(rate.allowance('b', 0)).toBe(60)
})

test('taking more than the allowance is paid back later', () => {
  const rate = createRateLimit({ perMinute: 60 })
  rate.take('a', 90, 0)
  expect(rate.allowance('a', 0)).toBe(0)
  expect(rate.readyAt('a', 0)).toBe(31_000)
  expect(rate.allowance('a', 30_999)).toBe(0)
  expect(rate.allowance('a', 31_000)).toBe(1)
})

test('a clock that goes back neither gives nor takes', () => {
  const rate = createRateLimit({ perMinute: 60 })
  rate.take('a', 10, 60_000)
  expect(rate.allowance('a', 0)).toBe(50)
})

test('readyAt is the first moment at which something is allowed', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000 }),
      fc.integer({ min: 0, max: 200_000 }),
      fc.integer({ min: 0, max: 1_000_000_000_000 }),
      (perMinute, taken, now) => {
        const rate = createRateLimit({ perMinute })
        rate.take('a', taken, now)
        const ready = rate.readyAt('a', now)
        expect(rate.allowance('a', ready)).toBeGreaterThanOrEqual(1)
        if (ready > now) expect(rate.allowance('a', ready - 1)).toBe(0)
      },
    ),
  )
})

test('over any stretch of time no group gets more than its rate and one minute’s worth', () => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 300 })), {
    maxLength: 100,
  })
  fc.assert(
    fc.property(steps, asked => {
      const rate = createRateLimit({ perMinute: 120 })
      let now = 0
      let total = 0
      for (const [wait, count] of asked) {
        now += wait
        const taken = Math.min(count, rate.allowance('a', now))
        rate.take('a', taken, now)
        total += taken
        expect(total).toBeLessThanOrEqual(120 + (now * 120) / 60_000)
      }
    }),
  )
})
