import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../children.ts'
import { absent, count, times } from '../format.ts'
import {
  type Hatchway,
  type HatchwayOptions,
  refuseRefusals,
  registerWithHatchway,
  startHatchway,
} from '../hatchway.ts'
import { startBareAgent } from '../peers/bare-agents.ts'
import { descendantsOf, proportionalMegabytes } from '../proc.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { asNumber, asText } from '../shape.ts'
import { pairedRatio } from '../statistics.ts'

const agents = 20
const words = '@Hatch write down that I want to stretch'
const bareName = `${agents} bare agents`
/** long enough to be looked at while it waits for more */
const idleMs = 4000
const settleMs = 1500

/** In one round all are asked at the same moment. */
interface Round {
  /** from the first question to the last answer */
  ms: number
  /** of all their processes once they have answered; what they share is counted once */
  megabytes: number
}

const memoryOf = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + proportionalMegabytes(pid), 0)

async function bareRound(base: string, socket: string): Promise<Round> {
  const begun = performance.now()
  const started = Array.from({ length: agents }, (_, group) => startBareAgent(base, group, socket, words))
  await Promise.all(started.map(({ answered }) => answered))
  const ms = performance.now() - begun
  await sleep(settleMs)
  const megabytes = memoryOf(started.map(({ pid }) => pid))
  await Promise.all(started.map(agent => agent.kill()))
  return { ms, megabytes }
}

/** Who writes to all groups at once, in a process of its own. */
async function openHatchway(options: HatchwayOptions) {
  await registerWithHatchway(options)
  const hatchway = await startHatchway(options)
  await hatchway.ready()
  const missing = await hatchway.agentsReady()
  if (missing !== undefined) {
    await hatchway.stop()
    return { missing }
  }
  const people = startChild(new URL('../peers/crowd.process.ts', import.meta.url), `${agents} people`)
  await people.call('begin', options.data)
  return {
    round: (): Promise<Round> =>
      hatchwayRound(hatchway, async () => asNumber(await people.call('ask', words))),
    async end() {
      await people.call('end')
      await people.end()
      await hatchway.stop()
      refuseRefusals(options.data)
    },
  }
}

async function hatchwayRound(hatchway: Hatchway, ask: () => Promise<number>): Promise<Round> {
  const ms = await ask()
  await sleep(settleMs)
  if ((await hatchway.sessions()) !== agents) throw new Error('a session did not stay')
  const megabytes = memoryOf([hatchway.pid, ...descendantsOf(hatchway.pid)])
  while ((await hatchway.sessions()) > 0) await sleep(50)
  return { ms, megabytes }
}

const line = (
  what: string,
  shown: (round: Round) => string,
  value: (round: Round) => number,
  own: readonly Round[],
  bare: readonly Round[],
): Line => {
  const middle = (rounds: readonly Round[]) =>
    [...rounds].sort((a, b) => value(a) - value(b))[Math.floor(rounds.length / 2)]
  const [ours, theirs] = [middle(own), middle(bare)]
  return {
    what,
    hatchway: ours ? shown(ours) : absent,
    against: theirs ? `${bareName}: ${shown(theirs)}` : bareName,
    ratio: ours && theirs ? times(pairedRatio(own.map(value), bare.map(value))) : absent,
    target: absent,
  }
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const model = startChild(new URL('../peers/model.process.ts', import.meta.url), 'the model')
  const socket = join(directory, 'model.sock')
  const url = asText(await model.call('begin', socket))
  const opened = await openHatchway({
    data: join(directory, 'data'),
    durability: 'full',
    groups: agents,
    dialect: 'hatchway',
    quotas: 'unlimited',
    record: 'count',
    agents: { sandbox: 'bubblewrap', idleMs, atOnce: agents, model: `${url}/v1` },
  })
  const bare: Round[] = []
  const own: Round[] = []
  for (let round = 0; round < (quick ? 2 : 6); round++) {
    const base = join(directory, `bare-${round}`)
    mkdirSync(base)
    const measured = {
      bare: await bareRound(base, socket),
      own: 'round' in opened ? await opened.round() : undefined,
    }
    const told = (name: string, { ms, megabytes }: Round) => `${name} ${count(ms)} ms, ${count(megabytes)} MB`
    say([told('bare', measured.bare), ...(measured.own ? [told('Hatchway', measured.own)] : [])].join('; '))
    // The first fills the caches.
    if (round === 0) continue
    bare.push(measured.bare)
    if (measured.own) own.push(measured.own)
  }
  if ('end' in opened) await opened.end()
  await model.call('end')
  await model.end()
  return {
    lines: [
      line(
        `${agents} groups at once, until all have their answer`,
        ({ ms }) => `${count(ms)} ms`,
        ({ ms }) => ms,
        own,
        bare,
      ),
      line(
        `${agents} sessions with the daemon, memory`,
        ({ megabytes }) => `${count(megabytes)} MB`,
        ({ megabytes }) => megabytes,
        own,
        bare,
      ),
    ],
    figures: { bare, own },
    missing: 'missing' in opened ? [opened.missing] : [],
  }
}

export const crowd: Row = {
  name: 'crowd',
  title: `${agents} groups at once, each with the driver assistant in bubblewrap and a scripted model`,
  run,
}
