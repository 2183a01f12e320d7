import { afterAll, expect, test } from 'vitest'
import { serveModelList } from '../../testing/src/agents/model-server.ts'
import {
  barriers,
  closeBrowser,
  enterConsole,
  openProfile,
  phone,
  program,
  shoot,
} from '../../testing/src/browser.ts'
import { openServed } from '../../testing/src/daemon/with-console.ts'

/** The page Models and the first steps, in a real browser. */
const attempt = program !== undefined || process.env.CI === 'true' ? test : test.skip
const needs = program === undefined ? ' (needs chromium)' : ''
afterAll(closeBrowser)

const looks = [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: phone }],
] as const

attempt(`a model is chosen in the chat’s first steps, and what is used of it is drawn${needs}`, async () => {
  const provider = await serveModelList(['qwen3:8b', 'nomic-embed-text'])
  const prices = { 'qwen3:8b': { input: 1, output: 5 } }
  const { host, link } = await openServed({ usage: { prices } }, ['main'])
  const { context, problems } = await openProfile()
  const page = await enterConsole(context, link)
  await page.goto(new URL('/#/chat', page.url()).href)
  const steps = page.getByRole('region', { name: 'First steps' })
  await steps.getByText('Say something').waitFor()
  await shoot(page, 'first-steps')
  expect(await barriers(page)).toEqual([])

  await steps.getByRole('listitem').filter({ hasText: 'model' }).getByRole('button').click()
  const dialog = page.getByRole('dialog')
  const found = dialog.getByRole('listitem').filter({ has: page.getByRole('combobox') })
  await found.getByRole('combobox').waitFor()
  expect(await found.getByRole('option').allTextContents()).toEqual(['qwen3:8b'])
  await shoot(page, 'connect-model')
  expect(await barriers(page)).toEqual([])
  await found.getByRole('button', { name: 'Use' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(host.config).toMatchObject({
    agents: { driver: 'assistant' },
    model: { provider, name: 'qwen3:8b' },
  })

  // Each step is ticked off by what has happened, not by having been clicked.
  await page.getByRole('textbox', { name: 'Message' }).fill('hello')
  await page.keyboard.press('Enter')
  await page.locator('.entry.own', { hasText: 'hello' }).waitFor()
  await shoot(page, 'said')
  await steps.locator('.done', { hasText: 'Say something' }).waitFor()
  await host.addGroup({
    ...{ folder: 'family', jid: 'web:family', name: 'Family', main: false, dialect: 'hatchway' },
  })
  await steps.locator('.done', { hasText: 'Add a group' }).waitFor()

  // A group that has to be called says so, and has it done.
  await page.goto(new URL('/#/chat/web%3Afamily', page.url()).href)
  await page.getByRole('heading', { name: 'Family' }).waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('is it raining?')
  await page.keyboard.press('Enter')
  await page.getByText('was not called').waitFor()
  await shoot(page, 'not-called')
  await page.getByRole('button', { name: 'Call @Hatch' }).click()
  await page.getByText('was not called').waitFor({ state: 'detached' })
  await page.locator('.entry.own', { hasText: '@Hatch' }).waitFor()

  await steps.getByRole('button', { name: 'Dismiss' }).click()
  await steps.waitFor({ state: 'detached' })

  const today = Date.now()
  const models = ['qwen3:8b', '<b>bold</b>', 'a-name-that-is-very-long-'.repeat(4)]
  for (let back = 0; back < 20; back++) {
    const day = new Date(today - back * 86_400_000).toISOString().slice(0, 10)
    for (const [i, model] of models.entries()) {
      const inputTokens = 10_000 * (i + 1) + 1500 * ((back * 7) % 5)
      const amounts = { requests: 3, inputTokens, outputTokens: 2000, cachedTokens: 500 }
      host.store.agents.addUsage({ group: back % 2 ? 'main' : 'family', day, model, ...amounts })
    }
  }
  for (const [name, options] of looks) {
    const { context, problems: wrong } = await openProfile(options)
    const page = await enterConsole(context, link)
    await page.goto(new URL('/#/models', page.url()).href)
    await page.getByRole('img', { name: /A bar for each day/ }).waitFor()
    await page.getByText('in use').waitFor()
    await page.getByRole('cell', { name: '<b>bold</b>' }).first().waitFor()
    await page.evaluate('document.fonts.ready')
    await shoot(page, `models-${name}`)
    expect(await barriers(page)).toEqual([])
    expect(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    ).toBe(0)
    if (name === 'light') {
      await page.getByLabel('Measure').selectOption('cost')
      await page.locator('.plot-keys li').first().getByText('qwen3:8b').waitFor()
      // Of the three, only one has a price.
      expect(await page.locator('.plot-keys li').count()).toBe(1)
      await page.getByLabel('By', { exact: true }).selectOption('group')
      await page.locator('.plot-keys').getByText('family').waitFor()
      await page.getByText('By day').click()
      expect(await page.getByRole('table').last().getByRole('row').count()).toBe(21)
      await shoot(page, 'models-cost')
    }
    expect(wrong).toEqual([])
  }
  expect(problems).toEqual([])
})
