/** Chance that can be repeated: the same seed gives the same run. */
export interface Random {
  /** 0 ≤ n < below */
  below(limit: number): number
  pick<T>(from: readonly T[]): T
  chance(probability: number): boolean
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    pick(from) {
      const chosen = from[below(from.length)]
      if (chosen === undefined) throw new Error('nothing to pick from')
      return chosen
    },
    chance: probability => next() < probability,
  }
}
