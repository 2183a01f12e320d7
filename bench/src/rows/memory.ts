import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../children.ts'
import { removeTree, syncDisk } from '../disk.ts'
import { count, times } from '../format.ts'
import { directoriesOf, type HatchwayOptions, registerWithHatchway, startHatchway } from '../hatchway.ts'
import { residentMegabytes } from '../proc.ts'
import type { Row, RowResult, Setting } from '../row.ts'
import { median, slope } from '../statistics.ts'

const groups = 100
const every = 250
const limit = 1.25
const patience = 3600
const target = `last quarter ≤ ${limit}× second`

/** Resident memory each quarter second, from the first tenth of the files on: before that the daemon is starting. */
const sample = async (
  pid: number,
  files: number,
  progress: () => Promise<{ files: number }>,
  say: Setting['say'],
) => {
  const samples: number[] = []
  const deadline = Date.now() + patience * 1000
  let said = 0
  while (Date.now() < deadline) {
    const done = (await progress()).files
    if (done >= files) return samples
    if (done >= files / 10) samples.push(residentMegabytes(pid))
    if (done - said >= files / 10) {
      said = done
      say(`${count(done)} of ${count(files)} files, ${count(residentMegabytes(pid))} MB`)
    }
    await sleep(every)
  }
  throw new Error(`${count(files)} files were not drained within ${patience} s`)
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const files = quick ? 200_000 : 1_000_000
  const what = `memory, draining ${count(files)} files`
  const options: HatchwayOptions = {
    data: join(directory, 'data'),
    durability: 'full',
    groups,
    dialect: 'nanoclaw',
    quotas: 'default',
    record: 'count',
  }
  await registerWithHatchway(options)
  say(`writing ${count(files)} files`)
  const producer = startChild(new URL('../producer.process.ts', import.meta.url), 'producer')
  const directories = directoriesOf(options.data, groups, 'messages')
  await producer.call('fill', { directories, count: files }, patience)
  await producer.end()
  await syncDisk()

  const hatchway = await startHatchway(options)
  const samples = await sample(hatchway.pid, files, hatchway.progress, say)
  const { seconds } = await hatchway.progress()
  await hatchway.stop()
  await removeTree(options.data)
  const quarter = Math.floor(samples.length / 4)
  if (quarter === 0) throw new Error('drained too fast to sample its memory')
  const second = median(samples.slice(quarter, 2 * quarter))
  const last = median(samples.slice(3 * quarter))
  return {
    lines: [
      {
        what,
        hatchway: `${count(last)} MB in the last quarter`,
        against: `${count(second)} MB in the second quarter`,
        ratio: times(last / second),
        target,
        met: last <= limit * second,
      },
    ],
    figures: {
      files,
      second,
      last,
      highest: Math.max(...samples),
      megabytesPerMinute: slope(samples) * (60_000 / every),
      filesPerSecond: files / seconds,
      samples,
    },
    missing: [],
  }
}

export const memory: Row = { name: 'memory', title: 'memory while draining a long backlog', run }
