import { setTimeout as sleep } from 'node:timers/promises'
import { asBigint, asFields, asTexts } from './shape.ts'

/**
 * What happened when, by name. Times are `process.hrtime.bigint()`, which reads CLOCK_MONOTONIC: two processes of
 * one machine can compare them.
 */
export interface Stamps {
  names: string[]
  at: BigInt64Array
}

export const asStamps = (value: unknown): Stamps => {
  const { names, at } = asFields(value)
  if (!(at instanceof BigInt64Array)) throw new TypeError('expected times')
  return { names: asTexts(names), at }
}

/** When each name was done, and how many were done more than once. */
export interface Done {
  at: Map<string, bigint>
  repeated: number
}

/** Asks for stamps until all `names` are among them, or time is up: what is missing then is for the caller to judge. */
export const gather = async (
  take: () => Promise<Stamps>,
  names: readonly string[],
  seconds: number,
): Promise<Done> => {
  const done: Done = { at: new Map(), repeated: 0 }
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    // the last ones are still under way when their sender is done, and asking would disturb them
    await sleep(20)
    const { names: taken, at } = await take()
    taken.forEach((name, index) => {
      if (done.at.has(name)) done.repeated++
      else done.at.set(name, asBigint(at[index]))
    })
    if (Date.now() > deadline || names.every(name => done.at.has(name))) return done
  }
}

/** Microseconds from `sent` to `done`, of those that are done. */
export const latencies = (sent: Stamps, done: Done): number[] =>
  sent.names.flatMap((name, index) => {
    const end = done.at.get(name)
    return end === undefined ? [] : [Number(end - asBigint(sent.at[index])) / 1000]
  })

/**
 * Keeps stamps in the process that takes them, and hands them over in bulk when asked: a message per file would
 * disturb what is measured.
 */
export const stampLog = () => {
  let names: string[] = []
  let at: bigint[] = []
  let total = 0
  let waiting: { total: number; resolve: () => void }[] = []
  const added = () => {
    if (waiting.length === 0) return
    for (const one of waiting) if (total >= one.total) one.resolve()
    waiting = waiting.filter(one => total < one.total)
  }
  return {
    add(name: string, time: bigint) {
      names.push(name)
      at.push(time)
      total++
      added()
    },
    /** only counts, for runs so long that remembering the names would itself look like a leak */
    count(files: number) {
      total += files
      added()
    },
    total: () => total,
    /** resolves once `count` stamps in all have been taken since the start, handed over or not */
    waitFor: (count: number) =>
      new Promise<void>(resolve => {
        waiting.push({ total: count, resolve })
        added()
      }),
    take(): Stamps {
      const taken = { names, at: BigInt64Array.from(at) }
      names = []
      at = []
      return taken
    },
  }
}
