import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import type { Locator, Page } from 'playwright-core'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { messagesAnswer } from '../../host/src/api/answers.ts'
import { entriesAnswer } from '../../host/src/api/chat-answers.ts'
import { announcedSocket } from '../../host/src/api/socket.ts'
import { findProgram } from '../../host/src/base/programs.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import { browser, closeBrowser, program, shoot } from '../src/browser.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { type Launched, launch } from '../src/daemon/process.ts'
import { until } from '../src/until.ts'

/**
 * Files both ways, with nothing left out: a person with a real browser, the daemon as people start it, an agent in a
 * real sandbox; and a daemon that is killed between the copy and the message, and right after it.
 */
const missing = program === undefined ? 'chromium' : findProgram('bwrap') ? undefined : 'bwrap'
const needs = missing === undefined ? '' : ` (needs ${missing})`
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

afterAll(closeBrowser)

/** eight by eight, red */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR42mP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC',
  'base64',
)
const drawing =
  '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>top.document.title="run"</script></svg>'
const markup = '<!doctype html><title>run</title><script>document.title="run"</script>'

/** Reads what came along, and sends it back. */
const agent = [
  'cat > prompt',
  `file=$(sed -n 's/^.*Attached file: \\([^ ]*\\) .*$/\\1/p' prompt | tail -1)`,
  'if [ -z "$file" ]; then echo nothing came; exit; fi',
  'cp "$file" back.txt',
  `cat > /workspace/ipc/messages/back.tmp <<'END'\n${JSON.stringify({
    version: 1,
    id: 'back',
    type: 'send_message',
    payload: {
      text: 'here it is again',
      attachments: [{ path: '/workspace/group/back.txt', name: 'back <b>.txt' }],
    },
  })}\nEND`,
  'mv /workspace/ipc/messages/back.tmp /workspace/ipc/messages/back.json',
  'while [ ! -e /workspace/ipc/responses/back.json ]; do sleep 0.05; done',
  'cp /workspace/ipc/responses/back.json answer.json',
  'echo "it says: $(cat "$file")"',
].join('\n')

async function openChat() {
  const installation = await openInstallation({
    sandbox: 'bubblewrap',
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      const config = {
        agents: { driver: 'command', command: ['/bin/sh', '-c', agent], idleMs: 60_000 },
        limits: { attachmentBytes: 100_000 },
      }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, HATCHWAY_WEB_ENABLED: 'yes', HATCHWAY_WEB_PORT: '0' }
    },
  })
  const printed = () => /http:\/\/\S+\?token=\S+/.exec(installation.daemon()?.output() ?? '')?.[0]
  await until(async () => printed() !== undefined)
  const context = await (await browser()).newContext({ viewport: { width: 1100, height: 750 } })
  onTestFinished(() => context.close())
  const problems: string[] = []
  context.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  context.on('weberror', error => problems.push(error.error().message))
  const page = await context.newPage()
  await page.goto(printed() ?? '')
  await page.locator('#connection[data-state=connected]').waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Chat' }).click()
  await page.getByRole('button', { name: 'Attach files' }).waitFor()
  return { installation, page, problems, folder: join(installation.data, 'groups', 'main') }
}

const widthOf = async (image: Locator) =>
  (await (await image.elementHandle())?.getProperty('naturalWidth'))?.jsonValue()

const saved = async (page: Page, click: () => Promise<void>) => {
  const [download] = await Promise.all([page.waitForEvent('download'), click()])
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') }
}

describe(`Files in the chat${needs}`, () => {
  attempt('what a person sends reaches the agent, which can read it and send one back', async () => {
    const { installation, page, problems, folder } = await openChat()
    await page.locator('#file').setInputFiles([
      { name: 'red.png', mimeType: 'image/png', buffer: picture },
      { name: 'to do.txt', mimeType: 'text/plain', buffer: Buffer.from('water the plants') },
    ])
    const chosen = page.getByRole('list', { name: 'Files to send' }).getByRole('listitem')
    await chosen.nth(1).waitFor()
    await until(async () => (await widthOf(chosen.first().locator('img'))) === 8)
    await until(async () => (await page.locator('progress:visible').count()) === 0)
    await shoot(page, 'files-chosen')
    await page.getByLabel('Message', { exact: true }).fill('look at these')
    await page.keyboard.press('Enter')
    await page.locator('.entry:not(.own) .words', { hasText: 'it says: water the plants' }).waitFor()
    expect(await chosen.count()).toBe(0)

    const own = page.locator('.entry.own', { hasText: 'look at these' })
    await until(async () => (await widthOf(own.locator('img'))) === 8)
    expect(await own.locator('img').getAttribute('alt')).toBe('red.png')
    const back = page.locator('.entry:not(.own)', { hasText: 'here it is again' }).getByRole('link')
    expect(await back.textContent()).toBe('back <b>.txt 16 bytes')
    expect(await saved(page, () => back.click())).toMatchObject({ text: 'water the plants' })
    await shoot(page, 'files')
    expect(JSON.parse(readFileSync(join(folder, 'answer.json'), 'utf8'))).toMatchObject({
      id: 'back',
      ok: true,
    })
    await page.reload()
    await own.locator('img').waitFor()
    expect(problems).toEqual([])

    // The terminal is a way, too.
    const path = join(installation.data, 'from-terminal.txt')
    writeFileSync(path, 'said at a terminal')
    rmSync(join(folder, 'answer.json'))
    expect(await installation.hatchway('chat', '--once', 'and this', '--attach', path, '--wait')).toContain(
      'it says: said at a terminal',
    )
    const { text } = await overSocket(announcedSocket(installation.data)).request(
      'GET',
      '/api/chats/local%3Amain/messages',
      undefined,
    )
    const file = entriesAnswer
      .parse(JSON.parse(text))
      .entries.flatMap(({ attachments = [] }) => attachments)[2]
    expect(file?.name).toBe('back <b>.txt')
    const copy = join(installation.data, 'saved.txt')
    await installation.hatchway('messages', 'save', file?.id ?? '', copy)
    expect(readFileSync(copy, 'utf8')).toBe('water the plants')
    await expect(installation.hatchway('messages', 'save', file?.id ?? '', copy)).rejects.toThrow('EEXIST')
  })

  attempt('pictures are shown, anything else is only offered, and nothing of it runs', async () => {
    const { installation, page, problems, folder } = await openChat()
    const name = '"><img src=x onerror=alert(1)>\u202egnp.html'
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'red'), picture)
    writeFileSync(join(folder, 'drawing.png'), drawing)
    writeFileSync(join(folder, 'page.html'), markup)
    const attachments = [
      { path: 'red', name: 'Rot.exe' },
      { path: 'drawing.png' },
      { path: 'page.html', name },
    ]
    await installation.hatchway(
      ...['post', '--group', 'main', '--type', 'send_message', '--wait', '--dir', 'messages'],
      ...['--payload', JSON.stringify({ text: 'see', attachments })],
    )
    const entry = page.locator('.entry', { hasText: 'see' })
    await entry.locator('.files li').nth(2).waitFor()
    const links = entry.getByRole('link')
    expect(await entry.locator('img').count()).toBe(1)
    await until(async () => (await widthOf(entry.locator('img'))) === 8)
    const shown = '"><img src=x onerror=alert(1)>_gnp.html'
    expect(await links.nth(2).locator('.name').textContent()).toBe(shown)
    await shoot(page, 'files-offered')

    const addressOf = async (link: Locator) =>
      new URL((await link.getAttribute('href')) ?? '', page.url()).href
    const [red = '', svg = '', html = ''] = await Promise.all((await links.all()).map(addressOf))
    const headersOf = async (address: string) => (await page.request.get(address)).headers()
    const always = {
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cache-control': 'private, max-age=3600',
      'cross-origin-resource-policy': 'same-origin',
    }
    expect(await headersOf(red)).toMatchObject({ ...always, 'content-type': 'image/png' })
    for (const address of [svg, html]) {
      expect(await headersOf(address)).toMatchObject({
        ...always,
        'content-type': 'application/octet-stream',
        'content-disposition': expect.stringMatching(
          /^attachment; filename="[A-Za-z0-9._ -]+"; filename\*=UTF-8''/,
        ),
      })
    }
    expect((await saved(page, () => links.nth(2).click())).text).toBe(markup)
    // Even who opens the address itself gets a file and no page.
    const other = await page.context().newPage()
    for (const address of [svg, html]) {
      const { text } = await saved(other, () =>
        other.goto(address).then(
          () => {},
          () => {},
        ),
      )
      expect([drawing, markup]).toContain(text)
    }
    expect(await page.title()).toBe('Main · Hatchway')
    expect(await other.title()).not.toBe('run')
    expect(problems).toEqual([])

    // Neither another page, nor a form, nor too much gets anything in.
    const upload = (headers: Record<string, string>, data = Buffer.from('x')) =>
      page.request.post(new URL('/api/chats/local%3Amain/files?name=x', page.url()).href, { headers, data })
    const { csrf } = await (await page.request.get(new URL('/api/me', page.url()).href)).json()
    const origin = new URL(page.url()).origin
    const own = { origin, 'x-hatchway-csrf': csrf, 'content-type': 'application/octet-stream' }
    expect((await upload(own)).status()).toBe(201)
    expect((await upload({ ...own, 'x-hatchway-csrf': '' })).status()).toBe(403)
    expect((await upload({ ...own, origin: 'http://evil.example' })).status()).toBe(403)
    expect((await upload({ ...own, 'content-type': 'text/plain' })).status()).toBe(403)
    const large = await upload(own, Buffer.alloc(5_000_000))
    expect(large.status()).toBe(413)

    // A browser without the token has no way in.
    const stranger = await (await browser()).newContext()
    onTestFinished(() => stranger.close())
    expect((await stranger.request.get(red)).status()).toBe(401)
  })

  attempt('what cannot be sent is said at once; files are also dropped and pasted', async () => {
    const { page, problems } = await openChat()
    const chosen = page.getByRole('list', { name: 'Files to send' }).getByRole('listitem')
    await page
      .locator('#file')
      .setInputFiles({ name: 'large.bin', mimeType: '', buffer: Buffer.alloc(100_001) })
    await chosen.getByRole('alert').filter({ hasText: 'larger than the 100 kB that can be sent' }).waitFor()
    await page.getByLabel('Message', { exact: true }).fill('never said')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Do not send large.bin' }).click()
    expect(await chosen.count()).toBe(0)
    expect(await page.locator('.entry').count()).toBe(0)
    await page.getByLabel('Message', { exact: true }).fill('')

    const give = (target: string, kind: string, field: string) =>
      page.evaluate(`{
        const given = new DataTransfer()
        given.items.add(new File(['by ${kind}'], '${kind}.txt', { type: 'text/plain' }))
        const event = new ${kind === 'paste' ? 'ClipboardEvent' : 'DragEvent'}('${kind}',
          { ${field}: given, bubbles: true, cancelable: true })
        document.querySelector('${target}').dispatchEvent(event)
      }`)
    await give('[role=log]', 'drop', 'dataTransfer')
    await give('#text', 'paste', 'clipboardData')
    await chosen.nth(1).waitFor()
    expect(await chosen.locator('.name').allTextContents()).toEqual(['drop.txt', 'paste.txt'])
    // A file alone is something to say, too.
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.entry:not(.own) .words', { hasText: 'it says: by paste' }).waitFor()

    const many = Array.from({ length: 11 }, (_, i) => ({
      name: `${i}.txt`,
      mimeType: '',
      buffer: Buffer.from('x'),
    }))
    await page.locator('#file').setInputFiles(many)
    await page.getByRole('alert').filter({ hasText: 'A message may have 10 files.' }).waitFor()
    expect(await chosen.count()).toBe(10)
    expect(problems).toEqual([])
  })
})

describe('A daemon that is killed', () => {
  test.each(['copied', 'attached', 'committed', 'decoded'])('at "%s" sends the files once', async step => {
    const data = mkdtempSync(join(tmpdir(), 'hatchway-attachments-'))
    let daemon: Launched | undefined
    onTestFinished(async () => {
      await daemon?.stop()
      rmSync(data, { recursive: true, force: true })
    })
    const up = async (env: Record<string, string> = {}) => {
      daemon = launch(data, { env })
      await daemon.ready
    }
    const request = (method: 'GET' | 'POST', path: string, body?: unknown) =>
      overSocket(announcedSocket(data)).request(method, path, body)
    await up({ HATCHWAY_FAULT: `${step}:1` })
    await request('POST', '/groups', { folder: 'family', jid: 'web:family', name: 'Family' })
    writeFileSync(join(data, 'groups', 'family', 'a.txt'), 'once')
    post(
      join(data, 'ipc', 'family', 'messages'),
      JSON.stringify({
        version: 1,
        id: 'once',
        type: 'send_message',
        payload: { text: 'once', attachments: [{ path: 'a.txt' }] },
      }),
    )
    expect(await daemon?.exited).toMatchObject({ signal: 'SIGKILL' })
    await up()
    const answer = join(data, 'ipc', 'family', 'responses', 'once.json')
    await until(async () => existsSync(answer))
    const { ok, result } = JSON.parse(readFileSync(answer, 'utf8'))
    expect(ok).toBe(true)
    const sent = async () => messagesAnswer.parse(JSON.parse((await request('GET', '/messages')).text))
    await until(async () => (await sent()).every(({ status }) => status === 'sent'))
    expect((await sent()).map(({ id, text }) => ({ id: String(id), text }))).toEqual([
      { id: result.message_id, text: 'once' },
    ])
    expect(readdirSync(join(data, 'files'))).toHaveLength(1)
    const { text } = await request('GET', '/api/chats/web%3Afamily/messages')
    const [entry] = entriesAnswer.parse(JSON.parse(text)).entries
    const [file] = entry?.attachments ?? []
    expect((await request('GET', `/api/files/${file?.id}`)).text).toBe('once')
  })
})
