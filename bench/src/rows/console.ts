import type { Browser, BrowserContext, Page } from 'playwright-core'
import { firstPaint, type Newest, openBrowser, watchNewest } from '../browser.ts'
import { watchMemory } from '../console-memory.ts'
import { type Contender, interleave } from '../contenders.ts'
import { absent, times, timing } from '../format.ts'
import { type BarePage, openBarePage } from '../peers/bare-page.ts'
import { type Console, openConsole } from '../peers/console.ts'
import { pause } from '../post.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { pairedRatio, type Rounds } from '../statistics.ts'

/** longer than the page gathers commands before it draws them: sent at once, one would fall into step with that */
const gap = 150

interface Opened {
  browser: Browser
  own: Console
  bare: BarePage
}

const names = {
  ownCold: 'Overview cold',
  ownWarm: 'Overview warm',
  bareCold: 'bare page cold',
  bareWarm: 'bare page warm',
  ownEvent: 'Traffic',
  bareEvent: 'bare EventSource',
}

/** Each time a browser that has nothing of the page yet, or one that has seen it before. */
const paintContender = async (
  name: string,
  cache: 'cold' | 'warm',
  url: string,
  newContext: () => Promise<BrowserContext>,
): Promise<Contender> => {
  const kept = cache === 'warm' ? await newContext() : undefined
  if (kept) await firstPaint(kept, url)
  return {
    name,
    async block(wanted) {
      const samples: number[] = []
      while (samples.length < wanted) {
        const context = kept ?? (await newContext())
        samples.push(await firstPaint(context, url))
        if (!kept) await context.close()
      }
      return samples
    },
    end: async () => kept?.close(),
  }
}

const paintContenders = ({ browser, own, bare }: Opened): Promise<Contender[]> => {
  const newBare = () => browser.newContext()
  return Promise.all([
    paintContender(names.ownCold, 'cold', own.url, own.newContext),
    paintContender(names.bareCold, 'cold', bare.url, newBare),
    paintContender(names.ownWarm, 'warm', own.url, own.newContext),
    paintContender(names.bareWarm, 'warm', bare.url, newBare),
  ])
}

const eventContender = (
  name: string,
  page: Page,
  newest: Newest,
  send: () => bigint | Promise<bigint>,
): Contender => ({
  name,
  async block(wanted) {
    const samples: number[] = []
    while (samples.length < wanted) {
      await pause(gap)
      const shown = newest.next()
      const at = await send()
      samples.push(Number((await shown) - at) / 1000)
    }
    return samples
  },
  end: () => page.context().close(),
})

const eventContenders = async ({ browser, own, bare }: Opened): Promise<Contender[]> => {
  const traffic = await own.open('traffic')
  const page = await (await browser.newContext()).newPage()
  await Promise.all([page.waitForResponse(/\/events$/), page.goto(bare.url)])
  return [
    eventContender(names.ownEvent, traffic, await watchNewest(traffic, own.newest), own.send),
    eventContender(names.bareEvent, page, await watchNewest(page, bare.newest), bare.send),
  ]
}

const against = (measured: ReadonlyMap<string, Rounds>, what: string, own: string, bare: string): Line => {
  const [ours, theirs] = [measured.get(own), measured.get(bare)]
  return {
    what: `console: ${what}`,
    hatchway: ours ? timing(ours) : absent,
    against: theirs ? `${bare} ${timing(theirs)}` : bare,
    ratio: ours && theirs ? times(pairedRatio(ours.medians, theirs.medians)) : absent,
    target: absent,
  }
}

const timingLines = (measured: ReadonlyMap<string, Rounds>): Line[] => [
  against(measured, 'first paint of the Overview, cold cache', names.ownCold, names.bareCold),
  against(measured, 'first paint of the Overview, warm cache', names.ownWarm, names.bareWarm),
  against(measured, 'file renamed → row in Traffic', names.ownEvent, names.bareEvent),
]

const measure = async (opened: Opened, { quick, minutes, say }: Setting): Promise<RowResult> => {
  const measured = new Map<string, Rounds>()
  for (const [open, samples] of [
    [paintContenders, quick ? 5 : 10],
    [eventContenders, quick ? 30 : 60],
  ] as const) {
    const contenders = await open(opened)
    for (const [name, rounds] of await interleave(contenders, { rounds: quick ? 4 : 10, samples, say }))
      measured.set(name, rounds)
    for (const contender of contenders) await contender.end()
  }
  const memory = await watchMemory(opened.own, minutes ?? (quick ? 1 : 60), say)
  return {
    lines: [...timingLines(measured), ...memory.lines],
    figures: { ...Object.fromEntries(measured), memory: memory.figures },
    missing: [],
  }
}

const run = async (setting: Setting): Promise<RowResult> => {
  const browser = await openBrowser()
  if (browser === undefined)
    return { lines: timingLines(new Map()), figures: {}, missing: ['chromium is not installed'] }
  try {
    const own = await openConsole(setting.directory, browser)
    const bare = await openBarePage()
    const result = await measure({ browser, own, bare }, setting)
    await bare.end()
    await own.end()
    return result
  } finally {
    await browser.close()
  }
}

export const consoleRow: Row = {
  name: 'console',
  title: 'the console in Chromium: paint, event → screen, memory',
  run,
}
