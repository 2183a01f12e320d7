import type { Usage } from '@hatchway/host/api-types'

export type By = 'model' | 'group'
export type Measure = 'tokens' | 'cost'

export interface Amounts {
  requests: number
  input: number
  cached: number
  output: number
  /** undefined: no price is known for any of it */
  cost: number | undefined
}

/** What one model or one group has used: in all, and on each of the days. */
interface Series {
  name: string
  sum: Amounts
  days: readonly Amounts[]
}

export interface Charted {
  /** 2026-01-31, UTC, without gaps */
  days: readonly string[]
  /** the largest first; what is beyond `mostSeries` is one series */
  series: readonly Series[]
}

export const mostSeries = 6
export const others = 'others'

const dayMs = 86_400_000
const nothing: Amounts = { requests: 0, input: 0, cached: 0, output: 0, cost: undefined }

export const measured = ({ input, output, cost }: Amounts, measure: Measure): number =>
  measure === 'cost' ? (cost ?? 0) : input + output

const plus = (a: Amounts, b: Amounts): Amounts => ({
  requests: a.requests + b.requests,
  input: a.input + b.input,
  cached: a.cached + b.cached,
  output: a.output + b.output,
  cost: a.cost === undefined && b.cost === undefined ? undefined : (a.cost ?? 0) + (b.cost ?? 0),
})

export const sumOf = (all: readonly Amounts[]): Amounts => all.reduce(plus, nothing)

export const daysUntil = (today: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) =>
    new Date(Date.parse(today) - (count - 1 - i) * dayMs).toISOString().slice(0, 10),
  )

/** One line for each model or group, over these days. */
export function seriesOf(rows: readonly Usage[], days: readonly string[], by: By): Series[] {
  const place = new Map(days.map((day, i) => [day, i]))
  const found = new Map<string, Amounts[]>()
  for (const row of rows) {
    const at = place.get(row.day)
    if (at === undefined) continue
    const each = found.get(row[by]) ?? days.map(() => nothing)
    found.set(row[by], each)
    each[at] = plus(each[at] ?? nothing, {
      requests: row.requests,
      input: row.input_tokens,
      cached: row.cached_tokens,
      output: row.output_tokens,
      cost: row.cost ?? undefined,
    })
  }
  return [...found].map(([name, each]) => ({ name, days: each, sum: sumOf(each) }))
}

/** So many that a reader can tell them apart. */
export function chartOf(all: readonly Series[], days: readonly string[], measure: Measure): Charted {
  const sorted = all
    .filter(({ sum }) => measured(sum, measure) > 0)
    .sort((a, b) => measured(b.sum, measure) - measured(a.sum, measure))
  if (sorted.length <= mostSeries) return { days, series: sorted }
  const rest = sorted.slice(mostSeries - 1)
  const joined = days.map((_, i) => sumOf(rest.map(each => each.days[i] ?? nothing)))
  return {
    days,
    series: [...sorted.slice(0, mostSeries - 1), { name: others, days: joined, sum: sumOf(joined) }],
  }
}
