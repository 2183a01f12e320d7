import type { Usage } from '@hatchway/host/api-types'
import { expect, test } from 'vitest'
import { chartOf, daysUntil, mostSeries, others, seriesOf } from './usage.ts'

const row = (day: string, model: string, tokens: number, cost: number | null = null): Usage => ({
  ...{ day, group: 'main', model, requests: 1, input_tokens: tokens, cached_tokens: 1, output_tokens: 1 },
  ...{ cost, currency: '$' },
})

test('days have no gaps, and end today, also across the end of a month', () => {
  expect(daysUntil('2026-03-01', 3)).toEqual(['2026-02-27', '2026-02-28', '2026-03-01'])
})

test('what was used is added up by day; what lies before them is left out', () => {
  const days = daysUntil('2026-01-02', 2)
  const rows = [row('2025-12-31', 'a', 9), row('2026-01-01', 'a', 10, 1), row('2026-01-02', 'a', 5)]
  expect(seriesOf(rows, days, 'model')).toEqual([
    {
      name: 'a',
      sum: { requests: 2, input: 15, cached: 2, output: 2, cost: 1 },
      days: [
        { requests: 1, input: 10, cached: 1, output: 1, cost: 1 },
        { requests: 1, input: 5, cached: 1, output: 1, cost: undefined },
      ],
    },
  ])
  expect(seriesOf(rows, days, 'group')).toMatchObject([{ name: 'main' }])
})

test('a chart shows the largest, and the rest as one', () => {
  const days = daysUntil('2026-01-01', 1)
  const rows = Array.from({ length: 20 }, (_, i) => row('2026-01-01', `m${i}`, i))
  const { series } = chartOf(seriesOf(rows, days, 'model'), days, 'tokens')
  expect(series.map(({ name }) => name)).toEqual(['m19', 'm18', 'm17', 'm16', 'm15', others])
  expect(series).toHaveLength(mostSeries)
  expect(series.at(-1)?.sum.input).toBe(105)
  // Without prices, there is no chart of the cost.
  expect(chartOf(seriesOf(rows, days, 'model'), days, 'cost').series).toEqual([])
})
