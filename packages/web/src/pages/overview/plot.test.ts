import { expect, test } from 'vitest'
import { ceilingOf, stepsOf, withSecond } from './plot.ts'

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()
const steps = stepsOf({ step_s: 10, points: [{ at: at(0), handled: 1, refused: 0 }] })

test('a whole hour is shown, whether the host was there or not', () => {
  expect(steps.points).toHaveLength(360)
  expect(steps.points.slice(0, -1).every(({ handled }) => handled === 0)).toBe(true)
})

test('a second is added to its step, or begins the next one', () => {
  const same = withSecond(steps, { at: at(9), handled: 2, refused: 1 })
  expect(same.points.at(-1)).toMatchObject({ handled: 3, refused: 1 })
  const next = withSecond(same, { at: at(10), handled: 5, refused: 0 })
  expect(next.points).toHaveLength(360)
  expect(next.points.slice(-2).map(({ handled }) => handled)).toEqual([3, 5])
  // Nobody looked for a while.
  const later = withSecond(next, { at: at(50), handled: 7, refused: 0 })
  expect(later.points.slice(-5).map(({ handled }) => handled)).toEqual([5, 0, 0, 0, 7])
  expect(withSecond(later, { at: at(20), handled: 9, refused: 0 }).points).toEqual(later.points)
  expect(withSecond(steps, { at: at(90_000), handled: 1, refused: 0 }).points).toHaveLength(360)
})

test('the top of the plot is a round number', () => {
  expect([0, 0.4, 1, 3, 20, 21, 999].map(ceilingOf)).toEqual([1, 1, 1, 5, 20, 50, 1000])
})
