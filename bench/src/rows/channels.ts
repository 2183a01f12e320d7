import { interleave } from '../contenders.ts'
import { absent, times, timing } from '../format.ts'
import type { Durability } from '../hatchway.ts'
import { grammySides, hatchwaySides, openStandIn, type Sides } from '../peers/telegram.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { pairedRatio, type Rounds } from '../statistics.ts'

const durabilities: readonly Durability[] = ['process', 'full']
const directions = [
  { side: 'heard', what: 'said on Telegram → stored', limit: 1.5 },
  { side: 'said', what: 'agent’s message committed → handed to Telegram', limit: 2 },
] as const

const run = async (setting: Setting): Promise<RowResult> => {
  const standIns = { bare: await openStandIn(), process: await openStandIn(), full: await openStandIn() }
  try {
    return await measure(setting, standIns)
  } finally {
    for (const standIn of Object.values(standIns)) await standIn.close()
  }
}

type StandIns = Record<'bare' | Durability, Awaited<ReturnType<typeof openStandIn>>>

const measure = async ({ directory, quick, say }: Setting, standIns: StandIns): Promise<RowResult> => {
  const bare = await grammySides(standIns.bare)
  const own = new Map<Durability, Sides>()
  for (const durability of durabilities)
    own.set(durability, await hatchwaySides(directory, durability, standIns[durability]))
  const contenders = [bare, ...own.values()].flatMap(({ heard, said }) => [heard, said])
  const measured = await interleave(contenders, { rounds: quick ? 5 : 15, samples: quick ? 60 : 100, say })
  for (const contender of contenders) await contender.end()

  const roundsOf = (sides: Sides | undefined, side: keyof Sides): Rounds | undefined =>
    measured.get(sides?.[side].name ?? '')
  const lines = directions.flatMap(({ side, what, limit }) =>
    durabilities.map((durability): Line => {
      const ours = roundsOf(own.get(durability), side)
      const theirs = roundsOf(bare, side)
      const ratio = ours && theirs && pairedRatio(ours.medians, theirs.medians)
      return {
        what: `${what}, ${durability}`,
        hatchway: ours === undefined ? absent : timing(ours),
        against: theirs === undefined ? 'grammY' : `grammY alone ${timing(theirs)}`,
        ratio: ratio === undefined ? absent : times(ratio),
        target: `≤ ${limit}×`,
        ...(ratio !== undefined && { met: ratio <= limit }),
      }
    }),
  )
  return { lines, figures: Object.fromEntries(measured), missing: [] }
}

export const channels: Row = {
  name: 'channels',
  title: 'a chat app, both ways, beside its library alone',
  run,
}
