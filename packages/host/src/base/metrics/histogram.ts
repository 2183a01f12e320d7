/** How often values fell below each bound. Adding one costs a few comparisons and allocates nothing. */
export interface Histogram {
  readonly bounds: readonly number[]
  add(value: number, times?: number): void
  /** for each bound how many were not above it, and last how many there were */
  cumulative(): number[]
  sum(): number
}

export function createHistogram(bounds: readonly number[]): Histogram {
  const limits = Float64Array.from(bounds)
  const counts = new Float64Array(bounds.length + 1)
  let sum = 0
  return {
    bounds,
    add(value, times = 1) {
      let place = 0
      while (place < limits.length && value > (limits[place] ?? 0)) place++
      counts[place] = (counts[place] ?? 0) + times
      sum += value * times
    },
    cumulative() {
      let total = 0
      return Array.from(counts, count => {
        total += count
        return total
      })
    },
    sum: () => sum,
  }
}

/** The latest values, for percentiles that are exact and of now. */
export interface Latest {
  add(value: number): void
  /** none where there is no value yet */
  percentiles(...shares: readonly number[]): number[]
}

export function createLatest(kept: number): Latest {
  const values = new Float64Array(kept)
  let added = 0
  const count = () => Math.min(added, kept)
  return {
    add(value) {
      values[added % kept] = value
      added++
    },
    percentiles(...shares) {
      const sorted = values.slice(0, count()).sort()
      return shares.flatMap(
        share => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? [],
      )
    },
  }
}
