import type { Series } from './plot.ts'

/** What one contender showed at one size. */
interface Step<T> {
  size: number
  figures: T
}

/** One contender over all sizes; `ended` says why it got no further. */
export interface Course<T> {
  name: string
  steps: Step<T>[]
  ended?: string
}

/** A value on an axis of powers of ten must lie above nothing at all. */
export const seriesOf = <T>(
  courses: readonly Course<T>[],
  value: (figures: T) => number,
  least = Number.MIN_VALUE,
): Series[] =>
  courses.map(({ name, steps, ended }) => ({
    name,
    points: steps.map(({ size, figures }) => ({ x: size, y: Math.max(least, value(figures)) })),
    ...(ended === undefined ? {} : { ended }),
  }))

const units = [
  { from: 1e6, unit: 's' },
  { from: 1e3, unit: 'ms' },
  { from: 1, unit: 'µs' },
]

/** 100 → 100 µs, 10,000 → 10 ms */
export const duration = (microseconds: number): string => {
  const { from, unit } = units.find(each => microseconds >= each.from) ?? { from: 1, unit: 'µs' }
  return `${microseconds / from} ${unit}`
}
