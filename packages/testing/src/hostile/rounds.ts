import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../random.ts'
import { type Line, readLedger } from './inside/ledger.ts'
import { goodAnswer, goodWord, orderText } from './inside/orders.ts'
import type { waves as allWaves } from './options.ts'
import type { Testbed } from './testbed.ts'
import { evil } from './testbed.ts'

export interface Rounds {
  turns: number
  /** attacks whose run was ended, by itself or by the host */
  killed: string[]
  /** other groups' agents that did not answer meanwhile */
  unanswered: string[]
}

/** Every attack at least once, each time in another order, until the time is over. */
export async function attackInRounds(options: {
  testbed: Testbed
  random: Random
  seed: number
  waves: typeof allWaves
  waveSeconds: number
  seconds: number
  progress(text: string): void
  hasEnded(): boolean
  /** one of them is over */
  endPhase(name: string): void
}): Promise<Rounds> {
  const { testbed, random, seed, waves, waveSeconds, hasEnded } = options
  const { installation } = testbed
  const over = Date.now() + 1000 * options.seconds
  const rounds: Rounds = { turns: 0, killed: [], unanswered: [] }
  let rest: (typeof waves)[number][] = []

  const turnEnded = async (turn: number, tell: () => Promise<unknown>) => {
    await tell()
    let toldAt = Date.now()
    const late = Date.now() + 1000 * waveSeconds + 45_000
    while (Date.now() < late && !hasEnded()) {
      await sleep(200)
      const lines = linesOf(testbed).filter(
        line => 'turn' in line && line.turn === turn && line.attack === '',
      )
      if (lines.some(({ kind }) => kind === 'ended')) return true
      // It may have been taken for the answer to something that its agent had asked people.
      if (lines.length === 0 && Date.now() > toldAt + 8000) {
        await tell()
        toldAt = Date.now()
      }
      if (
        lines.length > 0 &&
        (await installation.runs(evil.folder)).every(({ status }) => status !== 'running')
      )
        return false
    }
    return false
  }

  while (!hasEnded() && (rounds.turns < waves.length || Date.now() < over)) {
    if (rest.length === 0) rest = [...waves]
    const [wave = []] = rest.splice(random.below(rest.length), 1)
    const turn = rounds.turns++
    const name = wave.join(', ')
    options.progress(`${name} (turn ${turn})`)
    const orders = { turn, attacks: wave, seconds: waveSeconds, seed: seed + 1000 * turn }
    const tell = () =>
      installation.hatchway('chat', '--group', evil.folder, '--once', `@Hatch ${orderText(orders)}`)
    // Another group's agent is started, and answers, in the middle of it.
    const neighbour = sleep(1000).then(() => answers(testbed, 'main'))
    if (!(await turnEnded(turn, tell))) {
      rounds.killed.push(name)
      options.progress(`  its run was ended: ${(await installation.runs(evil.folder)).at(-1)?.error}`)
    }
    const heard = await neighbour
    options.endPhase(name)
    if (heard !== undefined) rounds.unanswered.push(`during ${name}: ${heard}`)
  }
  return rounds
}

/** undefined: it did; else what was heard instead */
export async function answers({ installation }: Testbed, group: string): Promise<string | undefined> {
  const args = ['chat', '--group', group, '--once', `@Hatch ${goodWord}`, '--wait', '--timeout', '90']
  try {
    const heard = await installation.hatchway(...args)
    return heard.includes(goodAnswer) ? undefined : JSON.stringify(heard)
  } catch (error) {
    return String(error)
  }
}

/** What the hostile agent has written down so far. */
export function linesOf({ layout }: Testbed): Line[] {
  try {
    return readLedger(join(layout.groups, evil.folder))
  } catch (error) {
    // It has not begun, or is about to.
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
}
