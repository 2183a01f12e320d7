import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { count } from '../format.ts'
import { type HatchwayOptions, registerWithHatchway, startUp } from '../hatchway.ts'
import { processorSeconds, residentMegabytes } from '../proc.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'

const groups = 10_000
const limits = { readyMs: 2000, processorPercent: 1, megabytes: 150 }
/** what the daemon still does right after it is ready belongs to the start, not to being idle */
const settle = 5000

const line = (what: string, unit: string, limit: number, value: number, digits: number): Line => ({
  what: `${count(groups)} groups idle: ${what}`,
  hatchway: `${value.toFixed(digits)} ${unit}`,
  against: `${count(limit)} ${unit}`,
  ratio: `${(value / limit).toFixed(2)}×`,
  target: '≤ 1×',
  met: value <= limit,
})

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const seconds = quick ? 30 : 60
  const options: HatchwayOptions = {
    data: join(directory, 'data'),
    durability: 'full',
    groups,
    dialect: 'nanoclaw',
    quotas: 'default',
    record: 'count',
  }
  await registerWithHatchway(options)
  // the limit is for a data directory that is in use; what the very first start adds is in the figures
  const first = await startUp(options.data)
  const firstReadyMs = first.readyMs
  await first.end()
  say(`first start: ready in ${count(firstReadyMs)} ms`)

  const hatchway = await startUp(options.data)
  const { readyMs } = hatchway
  say(`second start: ready in ${count(readyMs)} ms; watching it idle for ${seconds} s`)
  await sleep(settle)
  const usedBefore = processorSeconds(hatchway.pid)
  const begin = performance.now()
  await sleep(seconds * 1000)
  const used = processorSeconds(hatchway.pid) - usedBefore
  const processorPercent = (used / ((performance.now() - begin) / 1000)) * 100
  const megabytes = residentMegabytes(hatchway.pid)
  await hatchway.end()
  return {
    lines: [
      line('up', 'ms', limits.readyMs, readyMs, 0),
      line('CPU', '% of a core', limits.processorPercent, processorPercent, 2),
      line('memory', 'MB', limits.megabytes, megabytes, 0),
    ],
    figures: { firstReadyMs, readyMs, processorPercent, megabytes, seconds },
    missing: [],
  }
}

export const idle: Row = { name: 'idle', title: '10,000 groups registered, idle', run }
