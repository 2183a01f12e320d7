import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import type { ConfigInput } from '../../host/src/config.ts'
import {
  closeBrowser,
  desktop,
  enterChat,
  shoot as keepShot,
  openProfile,
  phone,
  program,
} from '../../testing/src/browser.ts'
import { openServed } from '../../testing/src/daemon/with-console.ts'
import { guardedService } from '../../testing/src/paths.ts'
import { until } from '../../testing/src/until.ts'

/**
 * The card of something an agent is not to do without a person, as that person sees it: a real browser, a real host,
 * and files in the place of the agent. Whoever wants to look names a folder in HATCHWAY_SHOTS: screenshots are kept
 * there.
 */
const attempt = program !== undefined || process.env.CI === 'true' ? test : test.skip

afterAll(closeBrowser)

const markup = `<img src=x onerror="alert(1)"><b>bold</b>\u202e\u001b[2J pаypal"${' '.repeat(300)}jid: "web:mother"`

async function open(input: ConfigInput = {}) {
  const { live, host, link, drop, taint } = await openServed(input)
  await taint()
  const { store } = host
  const enter = async (viewport = desktop) => {
    // A click that came second is answered with 409, which a browser notes by itself.
    const { context, problems } = await openProfile({ viewport }, ['409'])
    const page = await enterChat(context, link)
    await page.locator('#room-name', { hasText: 'main' }).waitFor()
    return { page, problems }
  }
  return {
    host,
    enter,
    want: (id: string, text: string) => drop('main', 'send_message', id, { jid: 'web:family', text }),
    use: (id: string, tool: string) => drop('main', 'call_service', id, { tool, arguments: {} }),
    cancel: (id: string) => drop('main', 'cancel_request', `c-${id}`, { request_id: id }),
    /** what was said in the other chat */
    heard: () => store.messages({}).flatMap(({ jid, text }) => (jid === 'web:family' ? [text] : [])),
    async answer(id: string): Promise<unknown> {
      const path = join(live.layout.ipc, 'main', 'responses', `${id}.json`)
      const read = (): unknown => {
        try {
          return JSON.parse(readFileSync(path, 'utf8'))
        } catch {
          return undefined
        }
      }
      await until('there is an answer', () => read() !== undefined)
      return read()
    },
  }
}

const shoot = (page: Page, name: string) => keepShot(page, `approval-${name}`)
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const given = (page: Page, text: string) => page.locator('.card .given', { hasText: text }).waitFor()

describe(`Approvals in a browser${program === undefined ? ' (needs chromium)' : ''}`, () => {
  attempt('a click allows it, it happens, and everybody else sees who it was', async () => {
    const host = await open()
    const [one, two] = [await host.enter(), await host.enter()]
    host.want('r-1', `the door code ${markup}`)
    for (const { page } of [one, two]) {
      await button(page, 'Allow').waitFor()
      // Nothing an agent writes becomes markup, is obeyed, or is hidden.
      expect(await page.locator('.card img, .card b').count()).toBe(0)
      const text = await page.locator('.card').textContent()
      expect(text).toContain('<b>bold</b>\\u202e\\u001b[2J')
      // Nor does it pass for another field, and what could be overlooked is pointed out.
      expect(await page.locator('.card dt').allTextContents()).toEqual(['jid', 'text'])
      expect(text).toContain('\\"␠×300jid: \\"web:mother\\"')
      await page.locator('.card dd.note', { hasText: 'mixes Latin and Cyrillic letters' }).waitFor()
      expect(text).toContain('wants to say something in the chat web:family')
      expect(text).toContain('The conversation has read secrets')
      // Buttons need no code.
      expect(await page.getByText(/allow [B-Z]{5}-[B-Z]{5}/).count()).toBe(0)
    }
    await shoot(one.page, 'open')
    expect(host.heard()).toEqual([])
    await button(one.page, 'Allow').click()
    for (const { page } of [one, two]) {
      await given(page, 'Allowed by Operator')
      expect(await page.locator('.card button').count()).toBe(0)
    }
    await shoot(two.page, 'allowed')
    expect(await host.answer('r-1')).toMatchObject({ ok: true })
    expect(host.heard()).toEqual([`the door code ${markup}`])
    // It is there for whoever looks into that chat.
    await two.page.getByRole('link', { name: 'family' }).click()
    await two.page.locator('.entry .words', { hasText: 'the door code' }).waitFor()
    // Whoever comes later finds it as it ended, and one card for one wish.
    await one.page.reload()
    await given(one.page, 'Allowed by Operator')
    expect(await one.page.locator('.card').count()).toBe(1)
    expect([...one.problems, ...two.problems]).toEqual([])
  })

  attempt('a click denies it, and the words beside it go to the agent', async () => {
    const host = await open()
    const { page, problems } = await host.enter()
    host.want('r-1', 'one')
    await page.getByLabel('Why not, for the agent').fill('nobody asked for that')
    await button(page, 'Deny').click()
    await given(page, 'Denied by Operator: nobody asked for that')
    expect(await host.answer('r-1')).toMatchObject({
      ok: false,
      error: { code: 'denied', message: 'Operator said no. nobody asked for that' },
    })
    await shoot(page, 'denied')
    host.want('r-2', 'two')
    await button(page, 'Deny').click()
    expect(await host.answer('r-2')).toMatchObject({ error: { message: 'Operator said no.' } })
    expect(host.heard()).toEqual([])
    expect(problems).toEqual([])
  })

  attempt('to allow it always takes a second look, at exactly what will be allowed', async () => {
    const host = await open()
    const { page, problems } = await host.enter()
    const long = `good morning ${'x'.repeat(3000)} and the end`
    host.want('r-1', long)
    await page.locator('.card .hint', { hasText: 'characters more' }).waitFor()
    expect(await page.locator('.card').textContent()).not.toContain('and the end')
    await button(page, 'Allow always…').click()
    await page.locator('.sure', { hasText: 'the group main may do exactly this' }).waitFor()
    expect(await page.locator('.sure').textContent()).toContain('and the end')
    expect(await button(page, 'Allow').isVisible()).toBe(false)
    await shoot(page, 'always')
    await button(page, 'Back').click()
    expect(await button(page, 'Allow').isVisible()).toBe(true)
    await button(page, 'Show all').click()
    await page.locator('.card > div .whole', { hasText: 'and the end' }).waitFor()
    expect(host.host.store.approvals.rules()).toEqual([])
    await button(page, 'Allow always…').click()
    await button(page, 'Allow always').click()
    await given(page, 'Allowed by Operator, from now on without asking')
    expect(host.host.store.approvals.rules()).toMatchObject([{ group: 'main', name: 'send_message' }])
    host.want('r-2', long)
    expect(await host.answer('r-2')).toMatchObject({ ok: true })
    host.want('r-3', `${long}!`)
    await button(page, 'Allow').waitFor()
    expect(host.heard()).toEqual([long, long])
    expect(problems).toEqual([])
  })

  attempt('a tool can be allowed whatever it is called with', async () => {
    const host = await open({ services: { plugins: [guardedService] } })
    const { page, problems } = await host.enter()
    host.use('r-1', 'unlabelled')
    await button(page, 'Allow always…').click()
    await page.locator('.sure', { hasText: 'the group main may use the tool unlabelled' }).waitFor()
    // There is nothing in it that could be allowed exactly.
    expect(await button(page, 'Allow always').count()).toBe(0)
    await button(page, 'Allow this tool').click()
    await given(page, 'Allowed by Operator, from now on without asking')
    expect(host.host.store.approvals.rules()).toMatchObject([{ name: 'unlabelled', scope: 'tool' }])
    host.use('r-2', 'unlabelled')
    expect(await host.answer('r-2')).toMatchObject({ ok: true })
    expect(problems).toEqual([])
  })

  attempt('two clicks at once: one counts, and the other is told', async () => {
    const host = await open()
    const [one, two] = [await host.enter(), await host.enter()]
    host.want('r-1', 'hello')
    await Promise.all([one, two].map(({ page }) => button(page, 'Allow').waitFor()))
    // The second one's click is on its way while the first one's counts.
    const counted = Promise.withResolvers<void>()
    const refused = two.page.waitForResponse(response => response.status() === 409)
    await two.page.route('**/approvals/*', async route => {
      await counted.promise
      await route.continue()
    })
    await button(two.page, 'Allow').click()
    await button(one.page, 'Deny').click()
    for (const { page } of [one, two]) await given(page, 'Denied by Operator')
    counted.resolve()
    expect(await (await refused).json()).toEqual({
      error: { code: 'wrong_state', message: 'Operator has said no.' },
    })
    expect(await host.answer('r-1')).toMatchObject({ ok: false, error: { code: 'denied' } })
    expect(host.heard()).toEqual([])
    for (const { page } of [one, two]) expect(await page.locator('.card .given').count()).toBe(1)
    expect([...one.problems, ...two.problems]).toEqual([])
  })

  attempt('with the keyboard alone, or in words, while others write', async () => {
    const host = await open()
    const { page, problems } = await host.enter()
    host.want('r-1', 'one')
    await button(page, 'Allow').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('.sure button:focus', { hasText: 'Back' }).waitFor()
    await page.keyboard.press('Enter')
    await page.locator('.choices .more:focus').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.type('half a rea')
    host.host.chats?.inbound.note({ folder: 'main', jid: 'web:main' }, 'x', 'something else is said')
    await page.getByText('something else is said').waitFor()
    await page.keyboard.type('son')
    await page.keyboard.press('Enter')
    await given(page, 'Denied by Operator: half a reason')
    await page.locator('#text:focus').waitFor()
    host.want('r-2', 'two')
    await button(page, 'Allow').waitFor()
    const [{ code } = { code: '' }] = host.host.store.approvals.open()
    await page.getByLabel('Message', { exact: true }).fill(`allow ${code}`)
    await page.keyboard.press('Enter')
    await given(page, 'Allowed by Operator')
    await page.locator('.entry.own .words', { hasText: `allow ${code}` }).waitFor()
    expect(await host.answer('r-2')).toMatchObject({ ok: true })
    expect(host.heard()).toEqual(['two'])
    expect(problems).toEqual([])
  })

  attempt('says so when others decide, or when its time is over', async () => {
    const host = await open({ groups: { main: { approvers: ['ann'] } } })
    const one = await host.enter()
    host.want('r-1', 'hello')
    await one.page.locator('.card .ending', { hasText: 'Others decide this.' }).waitFor()
    expect(await one.page.locator('.card button').count()).toBe(0)
    const hasty = await open({ guard: { approvalMs: 1000 } })
    const two = await hasty.enter()
    hasty.want('r-1', 'hello')
    await two.page.locator('.card .ending', { hasText: 'Nobody decided in time' }).waitFor()
    expect(await two.page.locator('.card button').count()).toBe(0)
    expect(await hasty.answer('r-1')).toMatchObject({ error: { code: 'expired' } })
    expect([...one.problems, ...two.problems]).toEqual([])
  })

  attempt('fits a phone, and goes when it is no longer needed', async () => {
    const host = await open()
    const { page, problems } = await host.enter(phone)
    host.want('r-1', 'w'.repeat(5000))
    const fits = async () => {
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
      for (const part of await page.locator('.card, .card button, .card input, .shown').all()) {
        if (!(await part.isVisible())) continue
        const box = await part.boundingBox()
        expect(box?.x).toBeGreaterThanOrEqual(0)
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(phone.width)
      }
    }
    await button(page, 'Allow').waitFor()
    await shoot(page, 'phone')
    await fits()
    await button(page, 'Allow always…').click()
    await button(page, 'Allow always').waitFor()
    await shoot(page, 'phone-always')
    await fits()
    host.cancel('r-1')
    await page.locator('.card .ending', { hasText: 'This is no longer needed.' }).waitFor()
    expect(await page.locator('.card button').count()).toBe(0)
    await shoot(page, 'phone-over')
    await fits()
    expect(problems).toEqual([])
  })
})
