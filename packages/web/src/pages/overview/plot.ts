import type { TrafficPoint } from '@hatchway/host/api-types'

/** What the plot shows: steps of the last hour, oldest first, and what comes each second added to the last of them. */
export interface Steps {
  stepMs: number
  points: readonly { at: number; handled: number; refused: number }[]
}

const shownMs = 3_600_000

type Step = Steps['points'][number]

/** A whole hour, whether the host was there or not. */
const wholeHour = (stepMs: number, points: readonly Step[]): readonly Step[] => {
  const count = Math.round(shownMs / stepMs)
  const first = points[0]
  if (!first || points.length >= count) return points.slice(-count)
  const before = Array.from({ length: count - points.length }, (_, i) => ({
    at: first.at - (count - points.length - i) * stepMs,
    handled: 0,
    refused: 0,
  }))
  return [...before, ...points]
}

export function stepsOf(traffic: { step_s: number; points: readonly TrafficPoint[] }): Steps {
  const stepMs = traffic.step_s * 1000
  const points = traffic.points.map(({ at, ...rest }) => ({ at: Date.parse(at), ...rest }))
  return { stepMs, points: wholeHour(stepMs, points) }
}

/** What is older than an hour is left behind. */
export function withSecond({ stepMs, points }: Steps, second: TrafficPoint): Steps {
  const { handled, refused } = second
  const last = points.at(-1)
  const at = Math.floor(Date.parse(second.at) / stepMs) * stepMs
  if (last && at < last.at) return { stepMs, points }
  if (last && at < last.at + stepMs) {
    const grown = { at: last.at, handled: last.handled + handled, refused: last.refused + refused }
    return { stepMs, points: [...points.slice(0, -1), grown] }
  }
  const gap: Step[] = []
  const from = Math.max((last?.at ?? at) + stepMs, at - shownMs)
  for (let missing = from; missing < at; missing += stepMs) gap.push({ at: missing, handled: 0, refused: 0 })
  return { stepMs, points: wholeHour(stepMs, [...points, ...gap, { at, handled, refused }]) }
}

/** A round number at or above the largest. */
export function ceilingOf(largest: number): number {
  if (largest <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(largest))
  return [1, 2, 5, 10].map(factor => factor * power).find(round => round >= largest) ?? largest
}
