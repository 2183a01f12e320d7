/** Time, injected: tests bring a clock of their own, which jumps when they say so. */
export interface Clock {
  /** milliseconds since 1970, as the machine has it; it may jump either way */
  now(): number
  /** calls back once, after so many milliseconds that no jump alters; what is returned calls it off */
  setTimer(callback: () => void, ms: number): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(callback, ms) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}
