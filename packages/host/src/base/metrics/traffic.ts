export const stepMs = 10_000
const steps = 360

interface TrafficPoint {
  /** milliseconds since 1970: when its ten seconds began */
  at: number
  handled: number
  refused: number
}

/**
 * What was handled in each ten seconds of the last hour. No timer turns the pages: whoever counts or looks does, so a
 * host without traffic sleeps.
 */
export interface Traffic {
  add(at: number, handled: number, refused: number): void
  /** since the start, oldest first; the last one is not over yet */
  points(at: number): TrafficPoint[]
}

export function createTraffic(startedAt: number): Traffic {
  const handled = new Float64Array(steps)
  const refused = new Float64Array(steps)
  const first = Math.floor(startedAt / stepMs)
  let current = first

  const turnTo = (at: number) => {
    const step = Math.floor(at / stepMs)
    // A clock that was set back brings no page back; one that was set far ahead turns all of them.
    if (step - current > steps) current = step - steps
    while (current < step) {
      current++
      handled[current % steps] = 0
      refused[current % steps] = 0
    }
  }

  return {
    add(at, some, ofThem) {
      turnTo(at)
      const place = current % steps
      handled[place] = (handled[place] ?? 0) + some
      refused[place] = (refused[place] ?? 0) + ofThem
    },
    points(at) {
      turnTo(at)
      const from = Math.max(Math.min(first, current), current - steps + 1)
      return Array.from({ length: current - from + 1 }, (_, index) => {
        const step = from + index
        return {
          at: step * stepMs,
          handled: handled[step % steps] ?? 0,
          refused: refused[step % steps] ?? 0,
        }
      })
    },
  }
}
