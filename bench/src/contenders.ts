import { microseconds } from './format.ts'
import { median, type Rounds, summarise } from './statistics.ts'

/** One of those who are measured side by side, ready to be measured again and again. */
export interface Contender {
  name: string
  /** measures `count` times, in µs */
  block(count: number): Promise<number[]>
  end(): Promise<void>
}

/** A contender that cannot take part, with the reason a person needs to mend it. */
export interface Absent {
  name: string
  missing: string
}

export const isPresent = (entrant: Contender | Absent): entrant is Contender => 'block' in entrant

interface Plan {
  rounds: number
  samples: number
  say(text: string): void
}

/** In each round another one goes first: what one leaves behind must not always hit the same neighbour. */
export const rotated = <T>(list: readonly T[], by: number): T[] => {
  const start = list.length === 0 ? 0 : by % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}

/**
 * Measures all contenders in turn, round after round, so that a slow minute of the machine falls on all of them. The
 * first round warms up code and caches, and is thrown away.
 */
export const interleave = async (
  contenders: readonly Contender[],
  { rounds, samples, say }: Plan,
): Promise<Map<string, Rounds>> => {
  const blocks = new Map<string, number[][]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    const medians: string[] = []
    for (const contender of rotated(contenders, round)) {
      const block = await contender.block(samples)
      if (round > 0) blocks.get(contender.name)?.push(block)
      medians.push(`${contender.name} ${microseconds(median(block))}`)
    }
    say(`${round === 0 ? 'warm-up' : `round ${round} of ${rounds}`}: ${medians.join(', ')}`)
  }
  return new Map([...blocks].map(([name, all]) => [name, summarise(all)]))
}
