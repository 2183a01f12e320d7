import { startChild } from '../children.ts'
import { type Absent, type Contender, interleave, isPresent } from '../contenders.ts'
import { fsyncContender } from '../disk.ts'
import { absent, microseconds, times, timing } from '../format.ts'
import type { Durability } from '../hatchway.ts'
import { latencyOf, type Method, pollSamples } from '../mailbox.ts'
import { bareWatch, secondPoller } from '../peers/files.ts'
import { hatchwayName, latencyContender, openHatchway } from '../peers/hatchway.ts'
import { natsMethod } from '../peers/nats.ts'
import { redisMethod } from '../peers/redis.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { paired, pairedRatio, type Rounds } from '../statistics.ts'

type Measured = ReadonlyMap<string, Rounds>

const show = (rounds: Rounds | undefined) => (rounds === undefined ? absent : timing(rounds))
const showPeer = (name: string, rounds: Rounds | undefined) =>
  rounds === undefined ? name : `${name} ${timing(rounds)}`

/** Hatchway's p50 as a multiple of a peer's. */
const against = (
  measured: Measured,
  durability: Durability,
  peer: string,
  most: number,
  target: string,
): Line => {
  const own = measured.get(hatchwayName(durability))
  const other = measured.get(peer)
  const line = {
    what: `idle latency, ${durability}`,
    hatchway: show(own),
    against: showPeer(peer, other),
    target,
  }
  if (own === undefined || other === undefined) return { ...line, ratio: absent }
  const ratio = pairedRatio(own.medians, other.medians)
  return { ...line, ratio: times(ratio), met: ratio <= most }
}

const againstPoller = (measured: Measured): Line => {
  const own = measured.get(hatchwayName('process'))
  const poller = measured.get(secondPoller.name)
  const line = {
    what: 'idle latency, process',
    hatchway: show(own),
    against: showPeer(secondPoller.name, poller),
    target: '≥ 1,000× faster',
  }
  if (own === undefined || poller === undefined) return { ...line, ratio: absent }
  const faster = poller.p50 / own.p50
  return { ...line, ratio: `${times(faster)} faster`, met: faster >= 1000 }
}

const againstFsync = (measured: Measured): Line => {
  const full = measured.get(hatchwayName('full'))
  const process = measured.get(hatchwayName('process'))
  const fsync = measured.get('fsync')
  const line = {
    what: 'idle latency, full',
    hatchway: show(full),
    against: `process + fsyncs of ${fsync === undefined ? absent : microseconds(fsync.p50)}`,
    target: '≤ 1.5 fsyncs more',
  }
  if (full === undefined || process === undefined || fsync === undefined) return { ...line, ratio: absent }
  const more = paired(
    [full.medians, process.medians, fsync.medians],
    (a = Number.NaN, b = Number.NaN, c = Number.NaN) => (a - b) / c,
  )
  return { ...line, ratio: `${more.toFixed(2)} fsyncs more`, met: more <= 1.5 }
}

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const producer = startChild(new URL('../producer.process.ts', import.meta.url), 'producer')
  const open = async ({ name, every, open }: Method): Promise<Contender | Absent> => {
    const mailbox = await open(directory, { producer })
    return 'missing' in mailbox ? mailbox : latencyOf(name, mailbox, every)
  }
  const entrants: (Contender | Absent)[] = [
    await open(bareWatch),
    await open(natsMethod),
    await open(redisMethod),
    fsyncContender(directory),
  ]
  for (const durability of ['process', 'full'] as const) {
    const opened = await openHatchway(directory, durability)
    entrants.push('missing' in opened ? opened : latencyContender(opened, producer))
  }
  const present = entrants.filter(isPresent)
  const measured = await interleave(present, { rounds: quick ? 5 : 15, samples: quick ? 60 : 100, say })

  const pollers = [await open(secondPoller)].filter(isPresent)
  const polled = await interleave(pollers, { rounds: quick ? 1 : 3, samples: pollSamples, say })
  for (const [name, rounds] of polled) measured.set(name, rounds)

  for (const contender of [...present, ...pollers]) await contender.end()
  await producer.end()
  return {
    lines: [
      against(measured, 'process', bareWatch.name, 2.5, '≤ 2.5×'),
      againstPoller(measured),
      against(measured, 'process', natsMethod.name, 1, 'ahead: ≤ 1×'),
      againstFsync(measured),
      against(measured, 'full', redisMethod.name, 1, 'ahead: ≤ 1×'),
    ],
    figures: Object.fromEntries(measured),
    missing: entrants.flatMap(entrant => (isPresent(entrant) ? [] : [entrant.missing])),
  }
}

export const latency: Row = { name: 'latency', title: 'idle latency: file renamed → effect committed', run }
