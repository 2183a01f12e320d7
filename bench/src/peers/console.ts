import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { startCommand } from '../children.ts'
import { directoriesOf, type HatchwayOptions, refuseRefusals, registerWithHatchway } from '../hatchway.ts'
import { fileNames, messageBody } from '../messages.ts'
import { post } from '../post.ts'

export interface Console {
  pid: number
  url: string
  /** the newest command in Traffic */
  newest: string
  /** where each group's messages go in */
  directories: string[]
  /** a browser that has never been here, but is signed in */
  newContext(): Promise<BrowserContext>
  /** a page in a browser of its own, live */
  open(place: string): Promise<Page>
  /** a command of the first group; gives the moment its file was renamed */
  send(): bigint
  end(): Promise<void>
}

const groups = 10
const connected = '#connection[data-state=connected]'

/** The daemon as people start it, with the console and without agents. */
export const openConsole = async (base: string, browser: Browser): Promise<Console> => {
  const options: HatchwayOptions = {
    data: join(base, 'data'),
    durability: 'full',
    groups,
    dialect: 'nanoclaw',
    quotas: 'default',
    record: 'count',
  }
  await registerWithHatchway(options)
  const daemon = await startCommand(
    new URL('../../../packages/cli/bin/hatchway.mjs', import.meta.url),
    ['up', '--data', options.data],
    /http:\S+\?token=\S+(?=\n)/,
    { HATCHWAY_AGENTS_ENABLED: 'no', HATCHWAY_WEB_ENABLED: 'yes', HATCHWAY_WEB_PORT: '0' },
  )
  const entrance = await browser.newContext()
  const page = await entrance.newPage()
  await page.goto(daemon.said)
  await page.locator(connected).waitFor()
  const storageState = await entrance.storageState()
  await entrance.close()

  const url = new URL('/', daemon.said).href
  const directories = directoriesOf(options.data, groups, 'messages')
  const nameOf = fileNames(1)
  const newContext = () => browser.newContext({ storageState, viewport: { width: 1280, height: 800 } })
  return {
    pid: daemon.pid,
    url,
    newest: '.row-list li:first-child a',
    directories,
    newContext,
    async open(place) {
      const opened = await (await newContext()).newPage()
      await opened.goto(`${url}#/${place}`)
      await opened.locator(connected).waitFor()
      return opened
    },
    send() {
      const now = new Date()
      return post(directories[0] ?? '', nameOf(now), messageBody(0, now))
    },
    async end() {
      await daemon.end()
      refuseRefusals(options.data)
    },
  }
}
