/** How many commands each group may send (promise 7). Over it, its files wait; nobody else's do. */
export interface RateLimit {
  /** how many commands the group may have handled now */
  allowance(folder: string, now: number): number
  /** spends part of the allowance; spending more than it is a debt that later minutes pay */
  take(folder: string, count: number, now: number): void
  /** when the allowance will be at least one: `now` if it is already */
  readyAt(folder: string, now: number): number
}

/** Levels are counted in sixty-thousandths of a command, so that a millisecond refills a whole number of them. */
const scale = 60_000

/** A bucket per group that holds a minute's worth and refills all the time. `now` is in milliseconds. */
export const createRateLimit = ({ perMinute }: { perMinute: number }): RateLimit => {
  const capacity = perMinute * scale
  // Only groups whose bucket was not full when last seen are here, the one that took least recently first.
  const buckets = new Map<string, { level: number; at: number }>()

  const refilled = (bucket: { level: number; at: number }, now: number): number =>
    Math.min(capacity, bucket.level + Math.max(0, now - bucket.at) * perMinute)

  const levelOf = (folder: string, now: number): number => {
    const bucket = buckets.get(folder)
    return bucket ? refilled(bucket, now) : capacity
  }

  const dropFull = (now: number) => {
    for (const [folder, bucket] of buckets) {
      if (refilled(bucket, now) < capacity) return
      buckets.delete(folder)
    }
  }

  return {
    allowance: (folder, now) => Math.max(0, Math.floor(levelOf(folder, now) / scale)),
    take(folder, count, now) {
      const level = levelOf(folder, now) - count * scale
      buckets.delete(folder)
      if (level < capacity) buckets.set(folder, { level, at: now })
      dropFull(now)
    },
    readyAt: (folder, now) => now + Math.max(0, Math.ceil((scale - levelOf(folder, now)) / perMinute)),
  }
}
