import { expect, test } from 'vitest'
import { count, counted, longSpanOf, relative, sizeOf, spanOf } from './figures.ts'

test('long numbers are grouped by a narrow space that no line breaks at', () => {
  expect([count(7), count(1234), count(12_345), count(1_234_567.89)]).toEqual([
    '7',
    '1234',
    '12\u202f345',
    '1\u202f234\u202f567.9',
  ])
  expect([counted(1, 'approval'), counted(0, 'approval')]).toEqual(['1 approval', '0 approvals'])
})

test('sizes and spans are told in the unit that fits', () => {
  expect([sizeOf(16), sizeOf(1000), sizeOf(24_600), sizeOf(3e9)]).toEqual([
    '16 bytes',
    '1.0 kB',
    '25 kB',
    '3.0 GB',
  ])
  expect([spanOf(320), spanOf(1234), spanOf(45_600), spanOf(2e6), spanOf(9e7)]).toEqual([
    '320 µs',
    '1.2 ms',
    '46 ms',
    '2.0 s',
    '1 min',
  ])
  expect([longSpanOf(59), longSpanOf(3600), longSpanOf(5400), longSpanOf(93_784)]).toEqual([
    '59 s',
    '1 h',
    '1 h 30 min',
    '1 day 2 h',
  ])
})

test('times are told from now, before and after; what is far away by its date', () => {
  const now = Date.UTC(2026, 10, 16, 12)
  const told = (seconds: number) => relative(now + seconds * 1000, now)
  expect([told(0), told(-4), told(-12), told(90), told(-7200), told(-86_400), told(3 * 86_400)]).toEqual([
    'now',
    'now',
    '12 s ago',
    'in 1 min',
    '2 h ago',
    '1 day ago',
    'in 3 days',
  ])
  expect(told(-400 * 86_400)).toContain('2025')
  expect(told(-40 * 86_400)).not.toContain('2026')
})
