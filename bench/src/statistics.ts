/** The value below which the fraction `q` of the samples lies, interpolated between neighbours. */
export const quantile = (samples: readonly number[], q: number): number => {
  const sorted = Float64Array.from(samples).sort()
  const place = (sorted.length - 1) * q
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  if (below === undefined || above === undefined) throw new Error('no samples')
  return below + (above - below) * (place - Math.floor(place))
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5)

/** Several rounds of the same measurement, in µs: their own medians, so that one disturbed round does not count. */
export interface Rounds {
  /** the p50 of each round, in the order they were run */
  medians: number[]
  p50: number
  p99: number
  samples: number
}

export const summarise = (rounds: readonly (readonly number[])[]): Rounds => {
  const medians = rounds.map(median)
  return {
    medians,
    p50: median(medians),
    p99: median(rounds.map(round => quantile(round, 0.99))),
    samples: rounds.reduce((sum, round) => sum + round.length, 0),
  }
}

/**
 * Combines the n-th rounds of several measurements and takes the median of the results. Rounds of one number ran
 * within seconds of each other, so a machine that slows down for a while slows all of them.
 */
export const paired = (
  rounds: readonly (readonly number[])[],
  combine: (...values: number[]) => number,
): number => {
  const shortest = Math.min(...rounds.map(values => values.length))
  return median(
    Array.from({ length: shortest }, (_, index) =>
      combine(...rounds.map(values => values[index] ?? Number.NaN)),
    ),
  )
}

export const pairedRatio = (a: readonly number[], b: readonly number[]): number =>
  paired([a, b], (x = Number.NaN, y = Number.NaN) => x / y)

/** Rise per step of the straight line that fits the samples best. */
export const slope = (samples: readonly number[]): number => {
  const middle = (samples.length - 1) / 2
  const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length
  let rise = 0
  let run = 0
  samples.forEach((value, index) => {
    rise += (index - middle) * (value - mean)
    run += (index - middle) ** 2
  })
  return run === 0 ? 0 : rise / run
}
