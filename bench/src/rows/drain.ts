import { join } from 'node:path'
import { startChild } from '../children.ts'
import { rotated } from '../contenders.ts'
import { removeTree, syncDisk } from '../disk.ts'
import { absent, count, perSecond, times } from '../format.ts'
import {
  directoriesOf,
  type HatchwayOptions,
  refuseRefusals,
  registerWithHatchway,
  startHatchway,
} from '../hatchway.ts'
import { drainInLoop } from '../peers/loop.ts'
import type { Row, RowResult, Setting } from '../row.ts'
import { median, pairedRatio } from '../statistics.ts'

const groups = 100
const target = 0.6
const patience = 900

const fill = async (data: string, files: number) => {
  const producer = startChild(new URL('../producer.process.ts', import.meta.url), 'producer')
  const directories = directoriesOf(data, groups, 'messages')
  try {
    await producer.call('fill', { directories, count: files }, patience)
  } finally {
    await producer.end()
  }
  await syncDisk()
  return directories
}

const drainBare = async (data: string, files: number) =>
  (await drainInLoop(await fill(data, files), data)).perSecond

/** From the moment the daemon is started: its own start-up counts against it. */
const drainHatchway = async (data: string, files: number) => {
  const options: HatchwayOptions = {
    data,
    durability: 'full',
    groups,
    dialect: 'nanoclaw',
    quotas: 'default',
    record: 'count',
  }
  await registerWithHatchway(options)
  await fill(data, files)
  const hatchway = await startHatchway(options)
  await hatchway.waitFor(files, patience)
  const done = await hatchway.progress()
  await hatchway.stop()
  if (done.files !== files) throw new Error(`${files} files were waiting and ${done.files} were committed`)
  refuseRefusals(data)
  return done.files / done.seconds
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const files = quick ? 20_000 : 100_000
  const rounds = quick ? 2 : 3
  const bare: number[] = []
  const own: number[] = []
  const sides = [
    { name: 'bare loop', rates: bare, drain: drainBare },
    { name: 'Hatchway full', rates: own, drain: drainHatchway },
  ]
  for (let round = 1; round <= rounds; round++) {
    for (const { name, rates, drain } of rotated(sides, round)) {
      const data = join(directory, `${round}-${name.replaceAll(' ', '-')}`)
      const rate = await drain(data, files)
      rates.push(rate)
      say(`round ${round} of ${rounds}: ${name} ${perSecond(rate)}`)
      await removeTree(data)
    }
  }
  const ratio = own.length > 0 ? pairedRatio(own, bare) : undefined
  return {
    lines: [
      {
        what: `draining ${count(files)} files, full`,
        hatchway: own.length > 0 ? perSecond(median(own)) : absent,
        against: `bare loop ${perSecond(median(bare))}`,
        ratio: ratio === undefined ? absent : times(ratio),
        target: `≥ ${target.toFixed(2)}×`,
        ...(ratio === undefined ? {} : { met: ratio >= target }),
      },
    ],
    figures: { files, groups, 'bare loop': bare, 'Hatchway full': own, ratio },
    missing: [],
  }
}

export const drain: Row = {
  name: 'drain',
  title: 'draining waiting files over 100 groups, committed durably',
  run,
}
