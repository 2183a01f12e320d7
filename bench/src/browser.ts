import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { findProgram } from './peers/programs.ts'
import { asNumber } from './shape.ts'

/** A real browser, and what it tells about its pages. */
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']
const patience = 30_000

/** undefined: there is none */
export const openBrowser = async (): Promise<Browser | undefined> => {
  const program = findProgram('chromium')
  return program === undefined
    ? undefined
    : chromium.launch({ executablePath: program, args: [...flags, ...quiet] })
}

const paintOf = `new Promise(resolve => {
  const look = list => list.getEntriesByName('first-contentful-paint').forEach(each => resolve(each.startTime))
  new PerformanceObserver(look).observe({ type: 'paint', buffered: true })
})`

/** From the start of the navigation until the first text or picture is painted, as the browser itself notes it; in µs. */
export const firstPaint = async (context: BrowserContext, url: string): Promise<number> => {
  const page = await context.newPage()
  await page.goto(url)
  const took = asNumber(await page.evaluate(paintOf)) * 1000
  await page.close()
  return took
}

/** What the browser counts for a page: times in seconds of CLOCK_MONOTONIC, memory in bytes. */
const readMetrics = async (page: Page, { tidied = false } = {}) => {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  if (tidied) await session.send('HeapProfiler.collectGarbage')
  const { metrics } = await session.send('Performance.getMetrics')
  await session.detach()
  return (name: string) => asNumber(metrics.find(metric => metric.name === name)?.value)
}

/** What is still in use once everything else is thrown away. */
export const pageUsage = async (page: Page) => {
  const metric = await readMetrics(page, { tidied: true })
  return { heap: metric('JSHeapUsedSize') / 1e6, nodes: metric('Nodes') }
}

export interface Newest {
  /** when another one than now is in the page, on the clock of `process.hrtime.bigint()` */
  next(): Promise<bigint>
}

/** Watches the link of a list's newest entry. The page takes the time itself, so that the way to us is not counted. */
export const watchNewest = async (page: Page, selector: string): Promise<Newest> => {
  const origin = (await readMetrics(page))('NavigationStart')
  let heard = (_at: bigint) => {}
  await page.exposeFunction('noteNewest', (now: number) =>
    heard(BigInt(Math.round(origin * 1e9 + now * 1e6))),
  )
  await page.evaluate(`{
    const newest = () => document.querySelector(${JSON.stringify(selector)})?.getAttribute('href')
    let last = newest()
    const look = () => {
      const now = performance.now()
      if (newest() === last) return
      last = newest()
      noteNewest(now)
    }
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
  }`)
  return {
    next: () =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          reject,
          patience,
          new Error(`nothing new in ${page.url()} for ${patience / 1000} s`),
        )
        heard = at => {
          clearTimeout(timer)
          resolve(at)
        }
      }),
  }
}
