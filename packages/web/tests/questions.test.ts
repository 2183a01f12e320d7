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
import { until } from '../../testing/src/until.ts'

/**
 * The card of a question as a person sees it: a real browser, a real host, and files in the place of the agent. Whoever
 * wants to look names a folder in HATCHWAY_SHOTS: screenshots are kept there.
 */
const attempt = program !== undefined || process.env.CI === 'true' ? test : test.skip

afterAll(closeBrowser)

const markup = '<img src=x onerror="alert(1)"><b>bold</b>\u202e'
const colour = {
  question: 'Which colour shall the hatch have?',
  options: [
    { label: 'Red', description: 'As the old one. It would have to be painted again next year.' },
    { label: 'Blue' },
    { label: markup, description: markup },
  ],
}
const why = { question: 'And why?' }

async function open(input: ConfigInput = {}) {
  const { live, host, link, drop } = await openServed(input, ['main'])
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
    ask: (id: string, ...questions: object[]) => drop('main', 'ask_user', id, { questions }),
    cancel: (id: string) => drop('main', 'cancel_request', `c-${id}`, { request_id: id }),
    async answer(id: string): Promise<{ result: { answers: { answer: string }[] } }> {
      const path = join(live.layout.ipc, 'main', 'responses', `${id}.json`)
      const read = () => JSON.parse(readFileSync(path, 'utf8'))
      await until('there is an answer', () => {
        try {
          return read() !== undefined
        } catch {
          return false
        }
      })
      return read()
    },
  }
}

const shoot = (page: Page, name: string) => keepShot(page, `question-${name}`)
const option = (page: Page, name: string) => page.getByRole('button', { name })

describe(`Questions in a browser${program === undefined ? ' (needs chromium)' : ''}`, () => {
  attempt('a click answers, and everybody else sees who it was', async () => {
    const host = await open()
    const [one, two] = [await host.enter(), await host.enter()]
    host.ask('r-1', colour)
    for (const { page } of [one, two]) {
      await option(page, 'Blue').waitFor()
      // Nothing an agent writes becomes markup.
      expect(await page.locator('.card img, .card b').count()).toBe(0)
      expect(await page.locator('.card .label').nth(2).textContent()).toContain('<b>bold</b>\\u202e')
    }
    await shoot(one.page, 'open')
    await option(one.page, 'Blue').click()
    for (const { page } of [one, two]) {
      await page.locator('.card .given', { hasText: 'Operator: Blue' }).waitFor()
      expect(await option(page, 'Blue').getAttribute('aria-pressed')).toBe('true')
      expect(await option(page, 'Red').isDisabled()).toBe(true)
      expect(await page.locator('.card input').count()).toBe(0)
    }
    await shoot(two.page, 'answered')
    expect(await host.answer('r-1')).toMatchObject({
      ok: true,
      result: { answers: [{ answer: 'Blue', option: 2 }] },
    })
    // Whoever comes later finds it as it ended, and one card for one question.
    await two.page.reload()
    await two.page.locator('.card .given', { hasText: 'Operator: Blue' }).waitFor()
    expect(await two.page.locator('.card').count()).toBe(1)
    expect([...one.problems, ...two.problems]).toEqual([])
  })

  attempt('two clicks at once: one counts, and both are told the same', async () => {
    const host = await open()
    const [one, two] = [await host.enter(), await host.enter()]
    host.ask('r-1', colour)
    await Promise.all([one, two].map(({ page }) => option(page, 'Red').waitFor()))
    // The second one's click is on its way while the first one's counts.
    const counted = Promise.withResolvers<void>()
    const refused = two.page.waitForResponse(response => response.status() === 409)
    await two.page.route('**/questions/*', async route => {
      await counted.promise
      await route.continue()
    })
    await option(two.page, 'Red').click()
    await option(one.page, 'Blue').click()
    for (const { page } of [one, two]) {
      await page.locator('.card .given', { hasText: 'Operator: Blue' }).waitFor()
    }
    counted.resolve()
    expect(await (await refused).json()).toEqual({
      error: { code: 'wrong_state', message: 'Operator has answered this already: Blue' },
    })
    expect((await host.answer('r-1')).result.answers).toMatchObject([{ answer: 'Blue' }])
    for (const { page } of [one, two]) expect(await page.locator('.card .given').count()).toBe(1)
    expect([...one.problems, ...two.problems]).toEqual([])
  })

  attempt('with the keyboard alone, several questions, while others write', async () => {
    const host = await open()
    const { page, problems } = await host.enter()
    host.ask('r-1', colour, why)
    await option(page, 'Red').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('.card .given', { hasText: 'Operator: Blue' }).waitFor()
    // The keyboard is where the next answer goes.
    await page.locator('.card input:focus').waitFor()
    await page.keyboard.type('it is ')
    host.host.chats?.typing('web:main', true)
    host.host.chats?.inbound.note({ folder: 'main', jid: 'web:main' }, 'x', 'something else is said')
    await page.getByText('something else is said').waitFor()
    await page.keyboard.type('the sea')
    await page.keyboard.press('Enter')
    await page.locator('.card .given', { hasText: 'Operator: it is the sea' }).waitFor()
    await page.locator('#text:focus').waitFor()
    expect(await host.answer('r-1')).toMatchObject({
      result: { answers: [{ option: 2 }, { answer: 'it is the sea' }] },
    })
    expect(problems).toEqual([])
  })

  attempt('by a number in the chat, and what is being written in the card is not lost', async () => {
    const host = await open()
    const { page, problems } = await host.enter()
    host.ask('r-1', colour, why)
    await page.getByLabel('In your own words: And why?').fill('half an ans')
    await page.getByLabel('Message', { exact: true }).fill('1')
    await page.keyboard.press('Enter')
    await page.locator('.card .given', { hasText: 'Operator: Red' }).waitFor()
    await page.locator('.entry.own .words', { hasText: '1' }).waitFor()
    expect(await page.getByLabel('In your own words: And why?').inputValue()).toBe('half an ans')
    await page.getByLabel('In your own words: And why?').fill('a whole answer')
    await page.getByRole('button', { name: 'Answer' }).click()
    expect(await host.answer('r-1')).toMatchObject({
      result: { answers: [{ option: 1 }, { answer: 'a whole answer' }] },
    })
    expect(problems).toEqual([])
  })

  attempt('fits a phone, and says when it is over', async () => {
    const host = await open()
    const { page, problems } = await host.enter(phone)
    host.ask('r-1', colour, { question: `${'x'.repeat(300)}?`, options: [{ label: 'y'.repeat(200) }] })
    await option(page, 'Red').waitFor()
    await shoot(page, 'phone')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    for (const part of await page.locator('.card, .card button, .card input').all()) {
      const box = await part.boundingBox()
      expect(box?.x).toBeGreaterThanOrEqual(0)
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(phone.width)
    }
    host.cancel('r-1')
    await page.locator('.card .ending', { hasText: 'This is no longer needed.' }).waitFor()
    expect(await option(page, 'Red').isDisabled()).toBe(true)
    expect(await page.locator('.card input').count()).toBe(0)
    await shoot(page, 'phone-over')
    expect(problems).toEqual([])
  })
})
