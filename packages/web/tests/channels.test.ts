import { encode } from 'uqr'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import {
  barriers,
  closeBrowser,
  enterConsole,
  openProfile,
  program,
  shoot,
} from '../../testing/src/browser.ts'
import { openTelegram } from '../../testing/src/channels/telegram/platform.ts'
import { openWhatsApp } from '../../testing/src/channels/whatsapp/platform.ts'
import { openServed } from '../../testing/src/daemon/with-console.ts'
import { until } from '../../testing/src/until.ts'

/** The page Channels, in a real browser, with a chat app that wants to be confirmed on a phone. */
const attempt = program !== undefined || process.env.CI === 'true' ? test : test.skip
afterAll(closeBrowser)

attempt(
  `what may deceive about who asks to be let in is noted${program === undefined ? ' (needs chromium)' : ''}`,
  async () => {
    const { host, link } = await openServed()
    const { context, problems } = await openProfile()
    const eve = { sender: 'eve@example.org', senderName: 'Раul', text: 'hi', at: 1 }
    host.chats?.pairing.asked('email', { jid: 'email:eve@example.org', ...eve })
    const page = await enterConsole(context, link)
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Channels' }).click()
    const card = page.locator('li.box', { has: page.getByRole('button', { name: 'Let in' }) })
    await card.getByText('⚠ name: "Раul" mixes Latin and Cyrillic letters').waitFor()
    await shoot(page, 'channels-asking')
    expect(await barriers(page)).toEqual([])
    expect(problems).toEqual([])
  },
)

attempt(
  `a QR code is shown until it is scanned${program === undefined ? ' (needs chromium)' : ''}`,
  async () => {
    const platform = await openWhatsApp()
    onTestFinished(platform.close)
    const { host, link } = await openServed()
    const { context, problems } = await openProfile()
    const page = await enterConsole(context, link)
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Channels' }).click()
    const card = page.locator('li.box', { has: page.getByRole('heading', { name: 'WhatsApp' }) })
    await card.getByText('not connected yet').waitFor()

    // The form has no field for another server.
    await page.route('**/api/host/channels', route =>
      route.continue(
        route.request().method() === 'POST'
          ? { postData: JSON.stringify({ kind: 'whatsapp', settings: platform.settings }) }
          : {},
      ),
    )
    await card.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('heading', { name: 'WhatsApp is added' }).waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await card.getByRole('img', { name: 'QR code' }).waitFor()
    await card.getByText('waits for you').waitFor()
    await shoot(page, 'channels-qr')
    expect(await barriers(page)).toEqual([])

    const channel = host.chats?.channels.all().find(({ name }) => name === 'whatsapp')
    const confirm = channel?.status?.().confirm
    if (!confirm) throw new Error('nothing to confirm')
    const { size, data } = encode(confirm.value, { border: 4 })
    const image = card.getByRole('img', { name: 'QR code' })
    expect(await image.getAttribute('viewBox')).toBe(`0 0 ${size} ${size}`)
    const dark = data.flat().filter(Boolean).length
    expect((await image.locator('path').getAttribute('d'))?.split('M').length).toBe(dark + 1)

    await platform.confirm(confirm)
    await until(() => channel?.status?.().isConnected === true)
    await card.getByText('connected', { exact: true }).waitFor()
    await image.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  },
)

attempt(
  `a connection that is lost is seen on the open page, and so is its return${program === undefined ? ' (needs chromium)' : ''}`,
  async () => {
    const platform = await openTelegram()
    onTestFinished(platform.close)
    const { link } = await openServed()
    const { context, problems } = await openProfile()
    const page = await enterConsole(context, link)
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Channels' }).click()
    const card = page.locator('li.box', { has: page.getByRole('heading', { name: 'Telegram' }) })
    await page.route('**/api/host/channels', route =>
      route.continue(
        route.request().method() === 'POST'
          ? { postData: JSON.stringify({ kind: 'telegram', settings: platform.settings }) }
          : {},
      ),
    )
    await card.getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Connect' }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    await card.getByText('connected', { exact: true }).waitFor()
    // Nobody reloads the page, and nobody clicks anything from here on.
    await platform.down()
    await card.getByText('not connected', { exact: true }).waitFor()
    await card.getByText('Telegram cannot be reached').waitFor()
    await platform.up()
    await card.getByText('connected', { exact: true }).waitFor()
    expect(problems).toEqual([])
  },
)
