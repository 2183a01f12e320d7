import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { serveModelApis } from '../../testing/src/agents/model-apis.ts'
import {
  closeBrowser,
  desktop,
  enterChat,
  shoot as keepShot,
  openProfile,
  phone,
  program,
} from '../../testing/src/browser.ts'
import { openInstallation } from '../../testing/src/daemon/installation.ts'
import { until } from '../../testing/src/until.ts'

/**
 * The chat as a person sees it: a real browser, the printed link, the daemon as people start it and the concierge in a
 * sandbox. Whoever wants to look names a folder in HATCHWAY_SHOTS: screenshots of every view are kept there.
 */
const missing = program === undefined ? 'chromium' : findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

afterAll(closeBrowser)

async function openChat(sandbox: string, environment: Record<string, string> = {}, agents: object = {}) {
  const installation = await openInstallation({
    sandbox,
    environment(home) {
      const file = join(home, 'hatchway.config.mjs')
      writeFileSync(file, `export default ${JSON.stringify({ agents })}`)
      return {
        HATCHWAY_CONFIG: file,
        HATCHWAY_WEB_ENABLED: 'yes',
        HATCHWAY_WEB_PORT: '0',
        ...environment,
      }
    },
  })
  const printed = () => /http:\/\/\S+\?token=\S+/.exec(installation.daemon()?.output() ?? '')?.[0]
  await until(async () => printed() !== undefined)
  return { installation, link: printed() ?? '' }
}

const say = async (page: Page, text: string) => {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.keyboard.press('Enter')
}
const words = (page: Page) => page.locator('.entry .words').allTextContents()
const from = (page: Page, who: 'own' | 'other') =>
  page.locator(who === 'own' ? '.entry.own .words' : '.entry:not(.own) .words')
const shoot = (page: Page, name: string) => keepShot(page, `chat-${name}`)

/** Run in the page, where there is a document. */
const noteWriting = `{
  const sign = document.getElementById('typing')
  const note = () => { if (!sign.hidden) document.body.dataset.seen = sign.textContent.trim() }
  new MutationObserver(note).observe(sign, { attributes: true, childList: true, subtree: true })
}`

describe(`The chat in a browser${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt('answers, reminds without a reload, and remembers after one', async () => {
    const { link } = await openChat('bubblewrap')
    const { context, problems } = await openProfile()
    const page = await enterChat(context, link)
    // The token is not left in the address, where it would be in the history and over somebody's shoulder.
    expect(page.url()).not.toContain('token')
    await page.getByRole('button', { name: 'remind me in ten seconds' }).waitFor()
    expect(await page.locator('#warning').isVisible()).toBe(false)
    await shoot(page, 'empty')

    // Notes whether somebody was seen writing, however shortly. A navigation would take it away.
    await page.evaluate(noteWriting)
    await say(page, 'remind me in five seconds to stretch')
    await from(page, 'own').waitFor()
    await shoot(page, 'writing')
    await from(page, 'other').filter({ hasText: 'stretch' }).first().waitFor()
    await from(page, 'other').filter({ hasText: 'Reminder: stretch' }).waitFor()
    await page.getByText('Hatch is writing').waitFor({ state: 'hidden' })
    expect(await page.evaluate('document.body.dataset.seen')).toContain('Hatch is writing')
    expect(await page.locator('#empty').isVisible()).toBe(false)

    const before = await words(page)
    expect(before).toHaveLength(3)
    expect(before[0]).toBe('remind me in five seconds to stretch')
    await page.reload()
    await page.locator('.entry').nth(2).waitFor()
    expect(await words(page)).toEqual(before)
    expect(problems).toEqual([])
  })

  attempt('shows an answer while it is written, and then the answer in its place', async () => {
    const released = Promise.withResolvers<void>()
    const text = `Once upon a time <internal>nobody knows</internal>there was ${'a very '.repeat(20)}long story.`
    const api = await serveModelApis(() => ({ text, hold: released.promise }))
    onTestFinished(() => api.close())
    const { link } = await openChat('bubblewrap', {
      HATCHWAY_MODEL: 'compatible/stand-in',
      HATCHWAY_MODEL_URL: api.url,
    })
    const { context, problems } = await openProfile()
    const page = await enterChat(context, link)
    await say(page, 'tell me a story')
    const live = page.locator('.entry.live .words')
    await live.filter({ hasText: 'Once upon a time there was a very' }).waitFor()
    expect(await live.textContent()).not.toContain('long story')
    await shoot(page, 'live-text')
    // Whoever comes now sees as much of it.
    const other = await enterChat(context, link)
    await other.locator('.entry.live').filter({ hasText: 'Once upon a time' }).waitFor()
    released.resolve()
    await from(page, 'other').filter({ hasText: 'long story.' }).waitFor()
    await live.waitFor({ state: 'detached' })
    expect(await words(page)).toHaveLength(2)
    expect((await words(page)).join()).not.toContain('nobody knows')
    expect(problems).toEqual([])
  })

  attempt('shows what is said as text, whatever it is', async () => {
    const { installation, link } = await openChat('bubblewrap')
    const { context, problems } = await openProfile()
    const page = await enterChat(context, link)
    const markup =
      '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b> &amp; [a](javascript:alert(3))'
    await say(page, markup)
    await from(page, 'own').filter({ hasText: 'bold' }).waitFor()
    expect(await from(page, 'own').first().textContent()).toBe(markup)

    // An agent cannot do more than a person: what it says takes the same way.
    const hostile = `${markup}\u001b[31mred\u001b]0;title\u0007 \u202eevil`
    const post = ['--group', 'main', '--type', 'send_message', '--wait']
    await installation.hatchway(
      'post',
      ...post,
      '--payload',
      JSON.stringify({ text: hostile, sender: '<i>Ann</i>' }),
    )
    const shown = from(page, 'other').filter({ hasText: 'evil' })
    await shown.waitFor()
    expect(await shown.textContent()).toBe(`${markup}\\u001b[31mred\\u001b]0;title\\u0007 \\u202eevil`)
    await page.locator('.who', { hasText: '<i>Ann</i>' }).waitFor()
    expect(
      await page.locator('.entries img, .entries script, .entries b, .entries i, .entries a').count(),
    ).toBe(0)
    expect(await page.title()).toBe('Main · Hatchway')
    await shoot(page, 'markup')
    expect(problems).toEqual([])
  })

  attempt('stops an agent at work, and so does the page of its run', async () => {
    const { installation, link } = await openChat(
      'bubblewrap',
      {},
      { driver: 'command', command: ['/bin/sh', '-c', 'cat; sleep 1000'] },
    )
    const { context, problems } = await openProfile()
    const page = await enterChat(context, link)
    const stopped = from(page, 'other').filter({ hasText: 'Stopped by Operator.' })
    const stop = (place: Page) => place.getByRole('button', { name: 'Stop', exact: true })
    await say(page, 'go on for ever')
    await stop(page).waitFor()
    await shoot(page, 'stop')
    await stop(page).click()
    await stopped.waitFor()
    await stop(page).waitFor({ state: 'hidden' })

    await say(page, 'and again')
    await stop(page).waitFor()
    const [run] = (await installation.runs()).filter(({ status }) => status === 'running')
    const runPage = await context.newPage()
    await runPage.goto(new URL(`#/runs/${run?.id}`, new URL('/', link)).href)
    await stop(runPage).click()
    await stopped.nth(1).waitFor()
    await stop(page).waitFor({ state: 'hidden' })
    await runPage.getByText('Operator stopped the turn.').nth(1).waitFor()
    await shoot(runPage, 'stopped-run')
    expect(problems).toEqual([])
  })

  attempt('shows nothing to a browser without the token', async () => {
    const { installation, link } = await openChat('bubblewrap')
    await installation.say('remind me tomorrow of the secret party')
    const { context } = await openProfile()
    const page = await context.newPage()
    const address = new URL('/', link)
    for (const path of ['/', '/?token=', `/?token=${'A'.repeat(43)}`]) {
      const response = await page.goto(new URL(path, address).href)
      expect(response?.status()).toBe(401)
      expect(await page.content()).not.toContain('secret')
    }
    await page.getByRole('heading', { name: 'does not know this browser' }).waitFor()
    await shoot(page, 'stranger')
    for (const path of ['/api/status', '/api/chats', '/api/chats/local%3Amain/messages', '/api/events']) {
      expect((await page.request.get(new URL(path, address).href)).status()).toBe(401)
    }

    // With it, the same browser sees everything, and goes on doing so without.
    await enterChat(context, link)
    const again = await enterChat(context, address.href)
    await from(again, 'own').filter({ hasText: 'secret party' }).waitFor()
  })

  attempt('is readable by day and night, on a desktop and on a phone', async () => {
    // Where nothing protects the machine, that has to stay on screen.
    const { installation, link } = await openChat('process')
    await installation.say('help')
    await installation.say('every weekday at 9 remind me of the stand-up')
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const [place, viewport] of Object.entries({ desktop, phone })) {
        const { context, problems } = await openProfile({ colorScheme, viewport })
        const page = await enterChat(context, link)
        await from(page, 'other').nth(1).waitFor()
        await page.getByRole('alert').filter({ hasText: 'WITHOUT a sandbox' }).waitFor()
        await shoot(page, `${colorScheme}-${place}`)
        for (const id of ['text', 'send', 'room-name', 'warning']) {
          const box = await page.locator(`#${id}`).boundingBox()
          if (!box) throw new Error(`${id} is not shown`)
          expect(box.x).toBeGreaterThanOrEqual(0)
          expect(box.x + box.width).toBeLessThanOrEqual(viewport.width)
          expect(box.y + box.height).toBeLessThanOrEqual(viewport.height)
        }
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
        const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
        const lightness = Number(/\d+/.exec(String(ground))?.[0])
        expect(colorScheme === 'light' ? lightness > 200 : lightness < 60).toBe(true)
        expect(problems).toEqual([])
      }
    }
  })
})
