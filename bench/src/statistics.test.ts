import { expect, test } from 'vitest'
import { median, paired, pairedRatio, quantile, slope, summarise } from './statistics.ts'

test('the median of an odd number of samples is the middle one, whatever their order', () => {
  expect(median([9, 1, 5])).toBe(5)
})

test('the median of an even number of samples lies between the two in the middle', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5)
})

test('samples are ordered as numbers, not as text', () => {
  expect(median([9, 10, 100])).toBe(10)
})

test('quantiles are interpolated, and the outermost are the smallest and the largest sample', () => {
  const samples = Array.from({ length: 101 }, (_, index) => index)
  expect(quantile(samples, 0)).toBe(0)
  expect(quantile(samples, 0.99)).toBe(99)
  expect(quantile(samples, 1)).toBe(100)
  expect(quantile([10, 20], 0.25)).toBe(12.5)
})

test('without samples there is no median to make up', () => {
  expect(() => median([])).toThrow('no samples')
})

test('one disturbed round does not move the summary', () => {
  const quiet = [100, 101, 102]
  expect(summarise([quiet, [9000, 9001, 9002], quiet])).toEqual({
    medians: [101, 9001, 101],
    p50: 101,
    p99: 101.98,
    samples: 9,
  })
})

test('a ratio is taken round by round, so a machine that slows down slows both sides', () => {
  expect(pairedRatio([200, 2000, 300], [100, 1000, 100])).toBe(2)
})

test('paired rounds end with the shorter measurement', () => {
  expect(
    paired(
      [
        [1, 2, 3],
        [10, 20],
      ],
      (a = 0, b = 0) => a + b,
    ),
  ).toBe(16.5)
})

test('a flat line has no slope and a rising one its rise per step', () => {
  expect(slope([7, 7, 7, 7])).toBe(0)
  expect(slope([1, 3, 5, 7])).toBe(2)
  expect(slope([5])).toBe(0)
})
