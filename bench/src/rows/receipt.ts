import { startChild } from '../children.ts'
import { type Absent, type Contender, interleave } from '../contenders.ts'
import { absent, times, timing } from '../format.ts'
import { type Durability, directoryOf } from '../hatchway.ts'
import { exchangeContender } from '../peers/exchange.ts'
import { hatchwayName, latencyContender, openHatchway } from '../peers/hatchway.ts'
import { requestContender } from '../requester.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { pairedRatio, type Rounds } from '../statistics.ts'

const durabilities: readonly Durability[] = ['process', 'full']
const limit = 2.5
const receiptName = (durability: Durability) => `receipt ${durability}`
const nobody = async () => {}

const line = (measured: ReadonlyMap<string, Rounds>, durability: Durability): Line => {
  const receipt = measured.get(receiptName(durability))
  const latency = measured.get(hatchwayName(durability))
  const base = { what: `request → receipt, ${durability}`, target: `≤ ${limit}×` }
  if (receipt === undefined || latency === undefined) {
    return { ...base, hatchway: absent, against: 'own latency', ratio: absent }
  }
  const ratio = pairedRatio(receipt.medians, latency.medians)
  return {
    ...base,
    hatchway: timing(receipt),
    against: `own latency ${timing(latency)}`,
    ratio: times(ratio),
    met: ratio <= limit,
  }
}

const peerLine = (measured: ReadonlyMap<string, Rounds>, peer: string): Line => {
  const receipt = measured.get(receiptName('process'))
  const other = measured.get(peer)
  return {
    what: 'request → receipt, process',
    hatchway: receipt === undefined ? absent : timing(receipt),
    against: other === undefined ? peer : `${peer} ${timing(other)}`,
    ratio: receipt && other ? times(pairedRatio(receipt.medians, other.medians)) : absent,
    target: absent,
  }
}

/**
 * Each durability's latency is measured again here, between the same rounds, so that the ratio does not compare two
 * moments of a noisy machine.
 */
const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const producer = startChild(new URL('../producer.process.ts', import.meta.url), 'producer')
  const pair = await exchangeContender(directory)
  const contenders: Contender[] = [pair]
  const missing: Absent[] = []
  for (const durability of durabilities) {
    const opened = await openHatchway(directory, durability)
    if ('missing' in opened) {
      missing.push(opened)
      continue
    }
    const { data } = opened.options
    const directories = {
      requests: directoryOf(data, 0, 'tasks'),
      responses: directoryOf(data, 0, 'responses'),
    }
    contenders.push(
      await requestContender(receiptName(durability), directories, nobody),
      latencyContender(opened, producer),
    )
  }
  const measured = await interleave(contenders, { rounds: quick ? 5 : 15, samples: quick ? 60 : 100, say })
  for (const contender of contenders) await contender.end()
  await producer.end()
  return {
    lines: [...durabilities.map(durability => line(measured, durability)), peerLine(measured, pair.name)],
    figures: Object.fromEntries(measured),
    missing: missing.map(entrant => entrant.missing),
  }
}

export const receipt: Row = { name: 'receipt', title: 'request → receipt seen by the other process', run }
