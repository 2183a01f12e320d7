/**
 * How often to look where no bell rings: soon after something was found, ever less often while nothing is. A second
 * of idle waiting costs an agent little; ten thousand directories looked at every few milliseconds cost a core.
 */
export interface Pace {
  readonly everyMs: number
  found(): void
  foundNothing(): void
}

export function createPace(minMs: number, maxMs: number): Pace {
  let everyMs = minMs
  return {
    get everyMs() {
      return everyMs
    },
    found() {
      everyMs = minMs
    },
    foundNothing() {
      everyMs = Math.min(maxMs, everyMs * 1.5)
    },
  }
}
