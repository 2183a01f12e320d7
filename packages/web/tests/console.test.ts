import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { hashPassword } from '../../host/src/api/access/password.ts'
import { findProgram } from '../../host/src/base/programs.ts'
import {
  barriers,
  closeBrowser,
  desktop,
  enterConsole,
  openProfile,
  phone,
  program,
  shoot,
} from '../../testing/src/browser.ts'
import { openInstallation } from '../../testing/src/daemon/installation.ts'
import { openServed } from '../../testing/src/daemon/with-console.ts'
import { until } from '../../testing/src/until.ts'

/**
 * The console as people see it: a real browser, real groups and their traffic, and a daemon as people start it.
 * Screenshots of every page are kept in `shots` beside this file, or where HATCHWAY_SHOTS says.
 */
const missing = program === undefined ? 'chromium' : findProgram('bwrap') ? undefined : 'bwrap'
const needs = missing === undefined ? '' : ` (needs ${missing})`
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
afterAll(closeBrowser)

const password = 'a password that is long enough'

const nav = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const panel = (page: Page) => page.locator('aside.panel')
const rows = (page: Page) => page.getByRole('list', { name: 'Commands' }).getByRole('link')
const said = (page: Page, text: string) => page.locator('.toast', { hasText: text }).waitFor()

/** A daemon in a process of its own, with an agent in a sandbox. */
async function openDaemon(port = 0) {
  const installation = await openInstallation({
    sandbox: 'bubblewrap',
    environment: () => ({ HATCHWAY_WEB_ENABLED: 'yes', HATCHWAY_WEB_PORT: String(port) }),
  })
  const printed = () => /http:\/\/\S+\?token=\S+/.exec(installation.daemon()?.output() ?? '')?.[0]
  await until(async () => printed() !== undefined)
  const ask = (group: string, type: string, payload: object) =>
    installation.hatchway(
      ...['post', '--group', group, '--type', type, '--wait', '--json'],
      ...['--payload', JSON.stringify(payload)],
    )
  return { installation, link: printed() ?? '', ask }
}

/** Something of every kind to look at: a question, what waits for a person, a task, a refused file. */
async function fill({ host, drop }: Awaited<ReturnType<typeof openServed>>, secret: string) {
  drop('main', 'ask_user', 'q-1', {
    questions: [{ question: 'Which colour?', options: [{ label: 'Red' }] }],
  })
  drop('main', 'send_message', 'a-1', { jid: 'web:family', text: secret })
  drop('main', 'schedule_task', 's-1', {
    prompt: 'water the plants',
    schedule_type: 'cron',
    schedule_value: '0 7 * * *',
  })
  drop('family', 'register_group', 'x-1', { jid: 'x:1', name: 'x', folder: 'xx' })
  await until(
    async () => host.store.approvals.open().length === 1 && host.store.tasks({ open: true }).length === 1,
  )
  const [task] = host.store.tasks({ open: true })
  const [refused] = host.quarantine.list()
  return { task, refused }
}

const markup = '<img src=x onerror="alert(1)"><script>alert(2)</script><b>bold</b>'
const obeyed = '\u202eevil\u001b[31mred\u001b]0;title\u0007'
const hostile = `${markup}${obeyed}`
const spelled = '\\u202eevil\\u001b[31mred\\u001b]0;title\\u0007'

/** Wide code and tables scroll by themselves, and what stands in a cell is not taken apart. */
async function expectReadable(page: Page) {
  await page.locator('.words pre').waitFor()
  expect(await page.locator('.log').evaluate(log => log.scrollWidth - log.clientWidth)).toBe(0)
  expect(await page.locator('.words pre').evaluate(code => code.scrollWidth > code.clientWidth)).toBe(true)
  const cell = page.getByRole('cell', { name: 'Photographer' })
  expect((await cell.boundingBox())?.height).toBeLessThan(45)
}

const allPages = [
  ...['overview', 'chat', 'traffic', 'tasks', 'tasks?view=calendar', 'groups', 'groups/main'],
  ...['channels', 'models', 'approvals', 'errors', 'audit', 'runs', 'settings'],
]

describe(`The console${needs}`, () => {
  attempt('every page, as a person uses it', async () => {
    const { installation, link, ask } = await openDaemon()
    await installation.say('every weekday at 9 remind me of the stand-up')
    await installation.addGroup({ folder: 'family', jid: 'web:family', name: 'Family' })
    const { context, problems } = await openProfile({}, ['422', '404', '409', '403'])
    const page = await enterConsole(context, link)

    // At a glance, and live.
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const tile = (name: string) => page.locator('.tile', { has: page.getByText(name, { exact: true }) })
    await tile('Groups').locator('.tile-value', { hasText: /^2$/ }).waitFor()
    const handled = Number(await tile('Handled').locator('.tile-value').textContent())
    await ask('main', 'send_message', { text: 'hello' })
    await tile('Handled')
      .locator('.tile-value', { hasText: new RegExp(`^${handled + 1}$`) })
      .waitFor()
    await ask('family', 'register_group', { jid: 'x:1', name: 'x', folder: 'xx' }).catch(() => '')
    await page.locator('.lines', { hasText: 'register_group' }).getByText('forbidden').waitFor()
    await page.getByRole('img', { name: /handled, 1 refused/ }).waitFor()

    // Every command, as it comes.
    await nav(page, 'Traffic').click()
    await rows(page).filter({ hasText: 'register_group' }).waitFor()
    await ask('main', 'react', { emoji: '👍' })
    await rows(page).first().filter({ hasText: 'react' }).waitFor()
    await page.getByLabel('Decision').selectOption('refused')
    expect(page.url()).toContain('decision=refused')
    await until(async () => (await rows(page).count()) === 1)
    await rows(page).first().click()
    await panel(page).getByText('Only the main group may use register_group.').first().waitFor()
    const text = await panel(page).textContent()
    for (const part of [
      '"folder":"xx"',
      'The agent wrote the file',
      'The host decided',
      'Sender',
      'Receipt',
    ]) {
      expect(text).toContain(part)
    }
    await page.reload()
    await panel(page).getByText('The file is kept in errors').waitFor()
    await page.keyboard.press('Escape')
    await panel(page).waitFor({ state: 'detached' })
    expect(await rows(page).count()).toBe(1)
    await button(page, 'Clear').click()
    await until(async () => (await rows(page).count()) > 2)
    await button(page, 'Pause').click()
    const before = await rows(page).count()
    await ask('main', 'react', { emoji: '👎' })
    await page.getByText('Paused; 1 new').waitFor()
    expect(await rows(page).count()).toBe(before)
    await button(page, 'Go on').click()
    await until(async () => (await rows(page).count()) === before + 1)

    // What runs when.
    await nav(page, 'Tasks').click()
    await page.getByRole('link', { name: /stand-up/ }).click()
    await button(page, 'Pause').click()
    await said(page, 'The task is paused.')
    await panel(page).locator('.badge', { hasText: 'paused' }).waitFor()
    await button(page, 'Resume').click()
    await panel(page).locator('.badge', { hasText: 'active' }).waitFor()
    await button(page, 'Edit').click()
    await page.getByLabel('When').fill('*/30 * * * *')
    await button(page, 'Save').click()
    await panel(page).getByText('every 30 min').waitFor()
    await button(page, 'Run now').click()
    await panel(page).locator('.history .badge', { hasText: 'done' }).waitFor()
    await panel(page).getByText('by hand').waitFor()
    await panel(page).getByRole('link', { name: 'transcript' }).click()
    await page.getByRole('heading', { name: 'Transcript' }).waitFor()
    await page.locator('.transcript li').first().waitFor()
    await page.goBack()
    await button(page, 'Cancel task').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel task' }).click()
    await said(page, 'The task is cancelled.')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'No task is active or paused' }).waitFor()
    await button(page, 'Show those that are over').click()
    await page.getByRole('link', { name: /stand-up/ }).waitFor()
    await page.getByLabel('Status').selectOption('')
    await button(page, 'New task').click()
    await page.getByLabel('Prompt').fill('look after the plants')
    await page.getByLabel('When').fill('every day')
    await button(page, 'Schedule').click()
    await page.getByRole('dialog').getByRole('alert').filter({ hasText: 'cron' }).waitFor()
    await page.getByLabel('When').fill('0 7 * * *')
    await button(page, 'Schedule').click()
    await page.getByRole('link', { name: 'look after the plants' }).waitFor()
    await button(page, 'Calendar').click()
    await page.locator('.due a:visible', { hasText: 'look after the plants' }).first().click()
    await panel(page).getByText('every day at 07:00').waitFor()
    await page.keyboard.press('Escape')

    // Refused, mended, and done after all.
    const late = {
      group: 'later',
      prompt: 'are you there?',
      schedule_type: 'interval',
      schedule_value: '3600000',
    }
    await ask('main', 'schedule_task', late).catch(() => '')
    writeFileSync(join(installation.data, 'ipc', 'family', 'tasks', '1-1-x.json'), '{"broken')
    await nav(page, 'Errors').click()
    await page.getByLabel('Code').selectOption('invalid_json')
    const refused = (text: string) => page.locator('.table tbody tr', { hasText: text }).getByRole('link')
    await refused('family').click()
    await panel(page).getByText('{"broken').waitFor()
    await page.keyboard.press('Escape')
    await page.getByLabel('Code').selectOption('')
    const first = (await refused('schedule_task').getAttribute('href')) ?? ''
    await refused('schedule_task').click()
    await button(page, 'Replay').click()
    await said(page, 'The file was given in again.')
    await panel(page).waitFor({ state: 'detached' })
    // Nothing was mended: it is refused as before.
    await until(async () => (await refused('schedule_task').getAttribute('href')) !== first)
    await nav(page, 'Groups').click()
    await button(page, 'Add group').click()
    await page.getByLabel('Name', { exact: true }).fill('Later')
    await page.getByRole('dialog').getByRole('button', { name: 'Add group' }).click()
    await said(page, 'The group is added.')
    await panel(page).getByRole('heading', { name: 'Later' }).waitFor()
    await nav(page, 'Errors').click()
    await refused('schedule_task').click()
    await button(page, 'Replay').click()
    await said(page, 'The file was given in again.')
    await nav(page, 'Tasks').click()
    await page.getByRole('link', { name: 'are you there?' }).waitFor()
    await page.goto(new URL('#/groups/later', page.url()).href)
    await button(page, 'Remove group').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove group' }).click()
    await said(page, 'The group is removed.')
    await page.locator('.cards', { hasText: 'Main' }).waitFor()
    await page.locator('.cards', { hasText: 'Later' }).waitFor({ state: 'detached' })

    await nav(page, 'Audit').click()
    await button(page, 'Verify').click()
    await page.getByRole('status').filter({ hasText: 'whole' }).waitFor()
    await nav(page, 'Runs').click()
    await page.locator('.table tbody tr').nth(1).waitFor()

    // With the keyboard alone.
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByRole('heading', { name: 'Settings' }).waitFor()
    await page.locator('.settings').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('timezone')
    await page
      .locator('.settings tbody tr', { hasText: 'HATCHWAY_TIMEZONE' })
      .getByText('UTC', { exact: true })
      .waitFor()
    await until(async () => (await page.locator('.settings tbody tr').count()) < 10)

    // By day and by night, whatever the system says.
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await ground()
    await page.getByRole('button', { name: 'Switch to light' }).click()
    await page.getByRole('button', { name: 'Switch to dark' }).click()
    expect(await ground()).not.toBe(light)
    await page.reload()
    await page.getByRole('heading', { name: 'Settings' }).waitFor()
    expect(await ground()).not.toBe(light)

    await button(page, 'Sign out').click()
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor()
    expect((await page.request.get(new URL('/api/host/overview', page.url()).href)).status()).toBe(401)
    expect(problems.filter(each => !each.includes('401'))).toEqual([])
  })

  attempt('is readable by day and night, on a desktop and on a phone, and keeps nobody out', async () => {
    const opened = await openServed()
    await opened.taint()
    const { link, drop } = opened
    const columns = ['Photograph', 'Resolution', 'Photographer', 'Description', 'Permissions', 'Collection']
    const table = [columns, columns.map(() => '-'), columns].map(cells => `|${cells.join('|')}|`).join('\n')
    const words = [
      '# What I did\n\n1. looked at `photos/`\n2. made a [list](https://example.org/list)',
      `| day | new |\n|-|-:|\n| Mon | 12 |\n\n${table}`,
      `\`\`\`sh\nls photos ${'--very-long-option '.repeat(12)}\n\`\`\``,
    ]
    drop('main', 'send_message', 'm-1', { text: words.join('\n\n') })
    const { task, refused } = await fill(opened, 'the door code is 1234')
    const pages = [...allPages, `tasks/${task?.id}`, `errors/${refused?.id}`, 'traffic/1', 'audit/1']
    // Colours do not depend on the size, nor the layout on the colours.
    const looks = [
      { colorScheme: 'light', place: 'desktop', viewport: desktop },
      { colorScheme: 'dark', place: 'phone', viewport: phone },
    ] as const
    for (const { colorScheme, place, viewport } of looks) {
      const { context, problems } = await openProfile({ colorScheme, viewport })
      const page = await enterConsole(context, link)
      for (const path of pages) {
        await page.goto(new URL(`#/${path}`, page.url()).href)
        await page.locator('main h1').first().waitFor()
        await until(async () => (await page.locator('.loading').count()) === 0)
        await shoot(page, `console-${path.replaceAll(/\W+/g, '-')}-${place}-${colorScheme}`)
        expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(viewport.width)
        expect(await barriers(page), path).toEqual([])
        if (path === 'chat') await expectReadable(page)
      }
      if (viewport === phone) {
        await page.getByRole('button', { name: /^More/ }).click()
        await nav(page, 'Settings').waitFor()
        await shoot(page, `console-more-${place}-${colorScheme}`)
        expect(await barriers(page), 'more').toEqual([])
        await nav(page, 'Groups').click()
        await page.getByRole('heading', { name: 'Groups' }).waitFor()
        await nav(page, 'Settings').waitFor({ state: 'hidden' })
      }
      expect(problems).toEqual([])
    }
  })

  attempt('a question that waits is found by whoever comes later, and answered where it stands', async () => {
    const { host, link, drop } = await openServed()
    const both = [{ question: 'Which colour?', options: [{ label: 'Red' }] }, { question: 'And why?' }]
    drop('family', 'ask_user', 'q-1', { questions: both })
    await until(async () => host.store.questions.open().length === 1)
    const { context, problems } = await openProfile()
    const page = await enterConsole(context, link)
    const counted = (name: string, value: RegExp) =>
      nav(page, name).locator('.count', { hasText: value }).waitFor()
    await counted('Chat', /^1 waiting$/)
    await counted('Approvals', /^1 waiting$/)
    await page.locator('.tile', { hasText: 'Waiting for a person' }).click()
    await page.getByRole('heading', { name: 'Approvals' }).waitFor()
    await page.getByText('Which colour?').waitFor()
    await shoot(page, 'console-open-question')
    await page.getByRole('link', { name: 'in its chat' }).click()
    await page.locator('#room-name', { hasText: 'family' }).waitFor()
    await page.getByRole('link', { name: 'family 1 waiting' }).waitFor()
    await page.getByRole('button', { name: 'Red' }).click()
    await page.getByText('Answered by').waitFor()
    await shoot(page, 'console-question-in-list')
    // Half of it is still asked.
    await nav(page, 'Approvals').click()
    await page.getByText('Answered by').waitFor()
    await page.getByLabel('In your own words: And why?').fill('as before')
    await button(page, 'Answer').click()
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor()
    await nav(page, 'Chat').locator('.count').waitFor({ state: 'detached' })
    await nav(page, 'Approvals').locator('.count').waitFor({ state: 'detached' })
    expect(host.store.questions.open()).toEqual([])
    expect(problems).toEqual([])
  })

  attempt('whatever agents write stays text on every page', async () => {
    const opened = await openServed()
    await opened.taint()
    const { host, link, drop } = opened
    await host.addGroup({ folder: 'shop', jid: 'web:shop', name: hostile, main: false, dialect: 'hatchway' })
    drop('main', 'send_message', 'm-1', { text: hostile, sender: hostile.slice(0, 128) })
    drop('main', 'ask_user', 'q-1', {
      questions: [{ question: hostile, options: [{ label: hostile, description: hostile }] }],
    })
    drop('main', 'send_message', 'a-1', { jid: 'web:family', text: hostile })
    drop('main', 'schedule_task', 's-1', {
      prompt: hostile,
      schedule_type: 'cron',
      schedule_value: '0 7 * * *',
    })
    drop('family', 'register_group', 'x-1', { jid: 'x:1', name: hostile, folder: 'xx' })
    post(join(opened.live.layout.ipc, 'family', 'tasks'), `{"version":1,"type":"${markup}`)
    await until(
      async () =>
        host.store.approvals.open().length === 1 &&
        host.quarantine.list().length === 2 &&
        host.store.tasks({ open: true }).length === 1,
    )
    const [task] = host.store.tasks({ open: true })
    const { context, problems } = await openProfile()
    const page = await enterConsole(context, link)
    const seqs = host.store.commands({ limit: 100 }).map(({ seq }) => `traffic/${seq}`)
    const errors = host.quarantine.list().map(({ id }) => `errors/${id}`)
    let seen = ''
    for (const path of [
      ...allPages,
      ...seqs,
      ...errors,
      `tasks/${task?.id}`,
      'groups/shop',
      'chat/web%3Ashop',
    ]) {
      await page.goto(new URL(`#/${path}`, page.url()).href)
      await page.locator('main h1').first().waitFor()
      await until(async () => (await page.locator('.loading').count()) === 0)
      const found = await page.locator('main img[src="x"], main script, main b, #console script').count()
      expect(found, path).toBe(0)
      const text = String(await page.evaluate('document.body.textContent + document.title'))
      expect(text, path).not.toMatch(/(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u)
      seen += text
    }
    expect(seen).toContain(`${markup}${spelled}`)
    await page.goto(new URL('#/approvals', page.url()).href)
    // What is asked of a person stands there twice: to be allowed, and to be answered.
    await page.locator('.card', { hasText: spelled }).nth(1).waitFor()
    await shoot(page, 'console-hostile')
    expect(problems).toEqual([])
  })

  attempt('a viewer sees no way to change anything, and an approver decides', async () => {
    const passwordHash = await hashPassword(password)
    const users = [
      { name: 'vera', role: 'viewer' as const, passwordHash },
      { name: 'ann', role: 'approver' as const, passwordHash },
    ]
    const opened = await openServed({ web: { users } })
    await opened.taint()
    const { host, url } = opened
    const { task, refused } = await fill(opened, 'the door code')
    const signIn = async (name: string) => {
      const { context, problems } = await openProfile({}, ['401', '403'])
      const page = await context.newPage()
      await page.goto(url)
      await page.getByLabel('Name').fill(name)
      await page.getByLabel('Password').fill('wrong')
      await button(page, 'Sign in').click()
      await page.getByRole('alert').filter({ hasText: 'wrong' }).waitFor()
      await page.getByLabel('Password').fill(password)
      await page.keyboard.press('Enter')
      await page.locator('#connection[data-state=connected]').waitFor()
      return { page, problems }
    }

    const { page, problems } = await signIn('vera')
    await page.locator('.who-am-i', { hasText: 'vera viewer' }).waitFor()
    // What is left is looking, filtering and leaving.
    const harmless = new Set([
      ...['To the content', 'Keyboard shortcuts', 'Sign out', 'Pause', 'List', 'Calendar', 'Verify', 'Chats'],
      ...[
        'Month before',
        'Month after',
        'More',
        'Send',
        'Attach files',
        'Clear',
        'Show all',
        'Older entries',
      ],
      'Colours: system. Switch to light',
    ])
    for (const path of [...allPages, `tasks/${task?.id}`, `errors/${refused?.id}`]) {
      await page.goto(new URL(`#/${path}`, page.url()).href)
      await page.locator('main h1').first().waitFor()
      await until(async () => (await page.locator('.loading').count()) === 0)
      const names = await Promise.all(
        (await page.getByRole('button', { disabled: false }).all()).map(
          async each => (await each.getAttribute('aria-label')) ?? (await each.textContent())?.trim() ?? '',
        ),
      )
      expect(
        names.filter(name => !harmless.has(name)),
        path,
      ).toEqual([])
    }
    await page.goto(new URL('#/chat', page.url()).href)
    expect(await page.getByLabel('Message', { exact: true }).isDisabled()).toBe(true)
    await page.locator('.card .option').first().waitFor()
    expect(await page.locator('.card .option').first().isDisabled()).toBe(true)
    // Nor is there a way around the page.
    const [approval] = host.store.approvals.open()
    const tried = await page.evaluate(`(async () => {
      const { csrf } = await (await fetch('/api/me')).json()
      const headers = { 'content-type': 'application/json', 'x-hatchway-csrf': csrf }
      const send = async (path, body) =>
        (await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })).status
      return [
        await send('/api/chats/web%3Amain/approvals/${approval?.seq}', { decision: 'allow' }),
        await send('/api/host/approvals/${approval?.seq}', { decision: 'allow' }),
        await send('/api/host/tasks/${task?.id}/pause', {}),
        await send('/api/chats/web%3Amain/messages', { text: 'hi' }),
      ]
    })()`)
    expect(tried).toEqual([403, 403, 403, 403])
    expect(host.store.approvals.open()).toHaveLength(1)
    expect(problems).toEqual([])

    const ann = await signIn('ann')
    await nav(ann.page, 'Approvals').click()
    await button(ann.page, 'Allow').click()
    await button(ann.page, 'Allow').waitFor({ state: 'detached' })
    await ann.page.locator('.table', { hasText: 'allowed' }).waitFor()
    expect(host.store.messages({}).map(({ text }) => text)).toContain('the door code')
    await nav(ann.page, 'Groups').click()
    await ann.page.locator('.cards .box').first().waitFor()
    expect(await button(ann.page, 'Add group').count()).toBe(0)
    // Whoever is put out is out, wherever they are.
    await nav(ann.page, 'Chat').click()
    await ann.page.getByLabel('Message', { exact: true }).fill('still here')
    await ann.page.keyboard.press('Enter')
    await ann.page.locator('.entry.own', { hasText: 'still here' }).waitFor()
    expect(ann.problems).toEqual([])
  })

  attempt('ten thousand commands scroll, and what comes in above moves nobody', async () => {
    const { host, link, drop } = await openServed()
    const count = 10_050
    for (let i = 0; i < count; i++) drop('main', 'refresh_groups', `r-${i}`, {})
    await until(async () => host.store.lastSeq() >= count)
    const { context, problems } = await openProfile()
    const page = await enterConsole(context, link)
    await nav(page, 'Traffic').click()
    await rows(page).first().waitFor()
    const scrollTo = (part: number) =>
      page.evaluate(
        `{ const list = document.querySelector('.rows'); list.scrollTop = list.scrollHeight * ${part} }`,
      )
    const inPage = async () => Number(await page.evaluate('document.querySelectorAll("main *").length'))
    const known = async () =>
      Number(await rows(page).first().locator('xpath=..').getAttribute('aria-setsize'))
    await until(async () => {
      await scrollTo(1)
      expect(await inPage()).toBeLessThan(1500)
      return (await known()) >= count
    })
    await scrollTo(1)
    await page.locator('.row-list a[href="#/traffic/1"]').waitFor()

    // In the middle, while more come.
    await scrollTo(0.5)
    const atTop = `(() => {
      const { top } = document.querySelector('.row-head').getBoundingClientRect()
      const all = [...document.querySelectorAll('.traffic-row')]
      return all.find(each => each.getBoundingClientRect().top >= top + 40)?.getAttribute('href')
    })()`
    const isInMiddle = (href: unknown) => /\/[3-7]\d{3}$/.test(String(href))
    await until(async () => isInMiddle(await page.evaluate(atTop)))
    const before = await page.evaluate(atTop)
    for (let i = 0; i < 25; i++) drop('main', 'refresh_groups', `s-${i}`, {})
    await until(async () => (await known()) >= count + 25)
    expect(await page.evaluate(atTop)).toBe(before)
    expect(await inPage()).toBeLessThan(1500)
    await shoot(page, 'console-ten-thousand')
    expect(problems).toEqual([])
  })

  attempt('after the daemon was killed and is back, nothing is missing', async () => {
    const port = await freePort()
    const { installation, link, ask } = await openDaemon(port)
    await ask('main', 'send_message', { text: 'before' })
    const { context } = await openProfile()
    const page = await enterConsole(context, link)
    await nav(page, 'Traffic').click()
    await rows(page).first().waitFor()
    const before = await rows(page).count()
    const chat = await enterConsole(context, new URL('/#/chat', link).href)
    await chat.locator('.entry .words', { hasText: 'before' }).waitFor()

    await installation.daemon()?.kill()
    await page.locator('#connection[data-state=disconnected]').waitFor()
    await shoot(page, 'console-disconnected')
    const tasks = join(installation.data, 'ipc', 'main', 'messages')
    for (let i = 0; i < 5; i++) {
      const message = {
        version: 1,
        id: `while-${i}`,
        type: 'send_message',
        payload: { text: `while away ${i}` },
      }
      post(tasks, JSON.stringify(message))
    }
    await installation.up()
    await page.locator('#connection[data-state=connected]').waitFor()
    await until(async () => (await rows(page).count()) === before + 5)
    const numbers = await Promise.all((await rows(page).all()).map(each => each.getAttribute('href')))
    expect(new Set(numbers).size).toBe(before + 5)
    for (let i = 0; i < 5; i++) {
      await chat.locator('.entry .words', { hasText: `while away ${i}` }).waitFor()
    }
    expect(await chat.locator('.entry .words', { hasText: 'while away' }).count()).toBe(5)
    // And it goes on.
    await ask('main', 'send_message', { text: 'after' })
    await chat.locator('.entry .words', { hasText: 'after' }).waitFor()
    await until(async () => (await rows(page).count()) === before + 6)
  })
})

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
