import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { findProgram } from '../../host/src/base/programs.ts'

/** A real browser, with everything noted that a well-behaved page never does. */
export const program = findProgram('chromium')

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]

let launched: Promise<Browser> | undefined
export const browser = () => {
  if (program === undefined)
    throw new Error('There is no program `chromium`. On Debian: apt-get install chromium')
  launched ??= chromium.launch({ executablePath: program, args: flags })
  return launched
}
export const closeBrowser = async () => (await launched)?.close()

export const desktop = { width: 1280, height: 800 }
export const phone = { width: 390, height: 780 }

export interface Profile {
  context: BrowserContext
  problems: string[]
}

/** `expected` are parts of what a browser notes by itself where a request was refused on purpose. */
export async function openProfile(
  options: BrowserContextOptions = {},
  expected: readonly string[] = [],
): Promise<Profile> {
  const context = await (await browser()).newContext({ viewport: desktop, ...options })
  onTestFinished(() => context.close())
  const problems: string[] = []
  context.on('console', message => {
    const isProblem = message.type() === 'error' || message.type() === 'warning'
    if (isProblem && !expected.some(part => message.text().includes(part))) problems.push(message.text())
  })
  context.on('weberror', error => problems.push(error.error().message))
  context.on('dialog', async dialog => {
    problems.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  return { context, problems }
}

export async function enterConsole(context: BrowserContext, link: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(link)
  await page.locator('#connection[data-state=connected]').waitFor()
  return page
}

/** The same, and on to the chat. */
export async function enterChat(context: BrowserContext, link: string): Promise<Page> {
  const page = await enterConsole(context, link)
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Chat' }).click()
  await page.locator('#room-name').waitFor()
  return page
}

const shots = process.env.HATCHWAY_SHOTS
/** Kept for whoever wants to look and says where. */
export const shoot = async (page: Page, name: string) => {
  if (shots === undefined) return
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: join(shots, `${name}.png`) })
}

const findings = z.object({
  violations: z.array(
    z.object({
      id: z.string(),
      impact: z.string().nullish(),
      nodes: z.array(z.object({ html: z.string() })),
    }),
  ),
})

/** What keeps people out who cannot see well or use no mouse. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = findings.parse(await page.evaluate('axe.run({ resultTypes: ["violations"] })'))
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html ?? ''}`)
}
