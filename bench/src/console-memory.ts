import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { pageUsage } from './browser.ts'
import { type Child, startChild } from './children.ts'
import { count, times } from './format.ts'
import type { Console } from './peers/console.ts'
import { residentMegabytes } from './proc.ts'
import type { Line, RowResult, Setting } from './row.ts'
import { asFields, asNumber } from './shape.ts'
import { median } from './statistics.ts'

const perSecond = 100
const limit = 1.25
/** how often memory is looked at: the first quarter is compared with the last */
const looks = 24
const patience = 60_000

type Figure = 'daemon' | 'trafficHeap' | 'overviewHeap' | 'trafficNodes' | 'overviewNodes'
type Sample = Record<Figure, number>

const newestSeq = async (page: Page, { newest }: Console) =>
  Number(/\d+$/.exec((await page.locator(newest).getAttribute('href')) ?? '')?.[0] ?? Number.NaN)
const rowsKnown = async (page: Page) =>
  Number(await page.locator('.row-list li').first().getAttribute('aria-setsize'))

const produce = async (producer: Child, { directories }: Console, rate: number, seconds: number) =>
  asFields(await producer.call('steady', { directories, perSecond: rate, seconds }, seconds * 2 + 60))

/** A page that has just been opened grows with each command, until it has as many as it keeps. */
const fillList = async (traffic: Page, own: Console, producer: Child) => {
  for (let before = -1, known = 0; known > before; ) {
    before = known
    await produce(producer, own, 5 * perSecond, 10)
    await sleep(1000)
    known = await rowsKnown(traffic)
  }
}

/** A page that has lost its stream would look frugal. */
const caughtUp = async (traffic: Page, own: Console, seq: number) => {
  const deadline = Date.now() + patience
  while ((await newestSeq(traffic, own)) < seq) {
    if (Date.now() > deadline) throw new Error('Traffic does not show every command')
    await sleep(100)
  }
}

const lineOf =
  (samples: readonly Sample[], when: string) =>
  (what: string, figure: Figure, unit: string): Line => {
    const values = samples.map(sample => sample[figure])
    const start = median(values.slice(0, looks / 4))
    const end = median(values.slice(-looks / 4))
    return {
      what: `console: ${what}${when}`,
      hatchway: `${end.toFixed(end < 10 ? 1 : 0)} ${unit} at the end`,
      against: `${start.toFixed(start < 10 ? 1 : 0)} ${unit} at the start`,
      ratio: times(end / start),
      target: `≤ ${limit}×`,
      met: end <= limit * start,
    }
  }

/** Commands at a steady pace, with two pages open. */
export const watchMemory = async (
  own: Console,
  minutes: number,
  say: Setting['say'],
): Promise<Pick<RowResult, 'lines' | 'figures'>> => {
  const producer = startChild(new URL('./producer.process.ts', import.meta.url), 'producer')
  const [overview, traffic] = [await own.open('overview'), await own.open('traffic')]
  own.send()
  await traffic.locator(own.newest).waitFor()
  await fillList(traffic, own, producer)
  say(
    `memory: Traffic holds ${count(await rowsKnown(traffic))} rows; ${minutes} min of ${perSecond} commands/s`,
  )

  const before = await newestSeq(traffic, own)
  const producing = produce(producer, own, perSecond, minutes * 60)
  const samples: Sample[] = []
  for (let look = 1; look <= looks; look++) {
    await Promise.race([sleep((minutes * 60_000) / looks), producing])
    const [inOverview, inTraffic] = [await pageUsage(overview), await pageUsage(traffic)]
    samples.push({
      daemon: residentMegabytes(own.pid),
      trafficHeap: inTraffic.heap,
      overviewHeap: inOverview.heap,
      trafficNodes: inTraffic.nodes,
      overviewNodes: inOverview.nodes,
    })
  }
  const { count: posted, seconds } = await producing
  await producer.end()
  await caughtUp(traffic, own, before + asNumber(posted))
  const line = lineOf(samples, `, ${minutes} min of ${perSecond} commands/s`)
  return {
    lines: [
      line('heap of Traffic', 'trafficHeap', 'MB'),
      line('heap of the Overview', 'overviewHeap', 'MB'),
      line('DOM nodes of Traffic', 'trafficNodes', 'nodes'),
      line('DOM nodes of the Overview', 'overviewNodes', 'nodes'),
      line('resident memory of the daemon', 'daemon', 'MB'),
    ],
    figures: { minutes, posted, perSecond: asNumber(posted) / asNumber(seconds), samples },
  }
}
