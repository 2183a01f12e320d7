import { join } from 'node:path'
import { startChild } from '../children.ts'
import { count, microseconds, perSecond } from '../format.ts'
import {
  directoriesOf,
  type HatchwayOptions,
  refuseRefusals,
  registerWithHatchway,
  startHatchway,
} from '../hatchway.ts'
import type { Row, RowResult, Setting } from '../row.ts'
import { asStamps, gather, latencies } from '../stamps.ts'
import { quantile } from '../statistics.ts'

const groups = 20
const producers = 2
const patience = 300
const everything = Number.MAX_SAFE_INTEGER
const target = 'lost 0, twice 0'

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const seconds = quick ? 3 : 10
  const what = `flow for ${seconds} s, full`
  const options: HatchwayOptions = {
    data: join(directory, 'data'),
    durability: 'full',
    groups,
    dialect: 'nanoclaw',
    quotas: 'default',
    record: 'names',
  }
  await registerWithHatchway(options)
  const hatchway = await startHatchway(options)
  await hatchway.ready()
  const writers = Array.from({ length: producers }, (_, number) =>
    startChild(new URL('../producer.process.ts', import.meta.url), `producer ${number}`),
  )
  for (const [number, writer] of writers.entries()) await writer.call('number', number)
  const directories = directoriesOf(options.data, groups, 'messages')
  const reports = await Promise.all(
    writers.map(writer => writer.call('burst', { directories, count: everything, seconds }, patience)),
  )
  for (const writer of writers) await writer.end()
  const sent = reports.map(asStamps)
  const names = sent.flatMap(stamps => stamps.names)
  say(`${count(names.length)} files posted in ${seconds} s; waiting for the last of them`)

  const done = await gather(hatchway.committed, names, patience)
  const behind = await hatchway.progress()
  await hatchway.stop()
  const samples = sent.flatMap(stamps => latencies(stamps, done))
  const lost = names.length - samples.length
  if (lost === 0) refuseRefusals(options.data)
  const figures = {
    posted: names.length,
    committed: done.at.size,
    lost,
    repeated: done.repeated,
    p50: quantile(samples, 0.5),
    p99: quantile(samples, 0.99),
    filesPerSecond: behind.files / behind.seconds,
  }
  return {
    lines: [
      {
        what,
        hatchway: `${count(figures.committed)} committed, p50 ${microseconds(figures.p50)}, p99 ${microseconds(figures.p99)}`,
        against: `${count(names.length)} posted (${perSecond(names.length / seconds)})`,
        ratio: `lost ${count(lost)}, twice ${count(done.repeated)}`,
        target,
        met: lost === 0 && done.repeated === 0,
      },
    ],
    figures,
    missing: [],
    ...(lost > 0 || done.repeated > 0
      ? { broken: `${lost} files were lost, ${done.repeated} done twice` }
      : {}),
  }
}

export const flow: Row = {
  name: 'flow',
  title: "sustained flow at two producers' full speed over 20 groups",
  run,
}
