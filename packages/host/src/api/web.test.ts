import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../testing/src/until.ts'
import { createLayout, layoutOf } from '../base/layout.ts'
import { createRetries } from '../base/retry.ts'
import { createChats } from '../chat/chats.ts'
import { createOutbox } from '../chat/outbox/outbox.ts'
import { type ConfigInput, configSchema } from '../config.ts'
import { createWebhookChannel } from '../plugins/webhook/channel.ts'
import { createPositions } from '../store/positions.ts'
import { openStore } from '../store/sqlite.ts'
import { groupOf as storedGroup } from '../store/testing.ts'
import { type ChatEventAnswer, chatEventAnswer, chatsAnswer, entriesAnswer } from './chat-answers.ts'
import { serveWeb } from './web-server.ts'

const groupOf = (folder: string, jid: string, more: Partial<Group> = {}): Group =>
  storedGroup(folder, { jid, ...more })

/** A console that is small enough to be looked at. */
function consoleFiles(): string {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-console-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  mkdirSync(join(directory, 'assets'))
  writeFileSync(
    join(directory, 'index.html'),
    '<!doctype html><script type="module" src="/assets/console.js"></script>',
  )
  writeFileSync(join(directory, 'assets', 'console.js'), 'export {}')
  writeFileSync(join(directory, 'assets', 'chunk-Ab12Cd34.js'), 'export {}')
  writeFileSync(join(directory, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  writeFileSync(join(directory, 'notes.json'), '{}')
  symlinkSync('/etc/passwd', join(directory, 'assets', 'linked.js'))
  return directory
}

/** Everything between a browser and the store, without agents: the test speaks for them. */
async function open(options: { config?: ConfigInput; data?: string; warning?: string } = {}) {
  const data = options.data ?? mkdtempSync(join(tmpdir(), 'hatchway-web-'))
  const config = { ...configSchema.parse({ web: { port: 0 }, ...options.config }), data }
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process' })
  const log = pino({ level: 'silent' })
  const now = () => Date.now()
  let kicks = 0
  const chats = createChats({
    store,
    config,
    positions: createPositions(store),
    said: () => {},
    retries: createRetries({ log: log, now: Date.now }),
    log,
    now,
    kick: () => {
      kicks++
    },
    channels: [createWebhookChannel({ settings: config.webhook, environment: {}, now })],
  })
  const outbox = createOutbox({
    store,
    channelOf: chats.channels.of,
    log,
    intakeIsBusy: () => false,
    now,
    settled: chats.settled,
  })
  await chats.connect()
  if (store.groups().length === 0) {
    store.transaction(transaction => {
      transaction.insertGroup(groupOf('family', 'web:family'))
      transaction.insertGroup(groupOf('main', 'local:main', { main: true }))
      transaction.insertGroup(groupOf('shop', 'webhook:shop', { requires_trigger: false }))
    })
  }
  const { warning } = options
  const server = await serveWeb({
    store,
    config,
    chats,
    log,
    directory: consoleFiles(),
    ...(warning !== undefined && { warning: () => warning }),
  })
  if (!server) throw new Error('nothing is served')
  let open = true
  const close = async () => {
    if (!open) return
    open = false
    await server.close()
    await outbox.stop()
    await chats.disconnect()
    store.close()
  }
  onTestFinished(async () => {
    await close()
    rmSync(data, { recursive: true, force: true })
  })
  let nextId = store.lastMessageId()
  const say = async (jid: string, text: string, sender: string | null = null) => {
    const id = ++nextId
    store.transaction(transaction =>
      transaction.insertMessage({
        id,
        group: 'main',
        jid,
        author: 'agent',
        kind: 'text',
        text,
        sender,
        speech: null,
        messageId: null,
        createdAt: now(),
      }),
    )
    outbox.kick()
    await until('it is sent', () => store.messages({ after: id - 1, limit: 1 })[0]?.status === 'sent')
  }
  return { data, store, chats, server, say, close, kicks: () => kicks, log }
}

type Opened = Awaited<ReturnType<typeof open>>

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** As a program sends it: any header can be set, the ones a browser keeps for itself too. */
const send = (
  port: number,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
) =>
  new Promise<Answer>((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options
    const outgoing = request({ host: '127.0.0.1', port, path, method, headers, agent: false })
    outgoing.once('error', reject)
    outgoing.once('response', async response => {
      let text = ''
      response.setEncoding('utf8')
      for await (const part of response) text += part
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
    })
    outgoing.end(body)
  })

async function signIn({ server }: Opened): Promise<Record<string, string>> {
  const answer = await send(server.port, new URL(server.link ?? '').search.replace(/^/, '/'))
  const [cookie = ''] = [answer.headers['set-cookie']].flat()
  return { cookie: cookie.split(';')[0] ?? '' }
}

/** with what a change has to bring along */
async function signInToChange(opened: Opened): Promise<Record<string, string>> {
  const headers = await signIn(opened)
  const { text } = await send(opened.server.port, '/api/me', { headers })
  return { ...headers, 'x-hatchway-csrf': JSON.parse(text).csrf }
}

const post = async (opened: Opened, jid: string, body: unknown, headers: Record<string, string> = {}) => {
  const { port } = opened.server
  const answer = await send(port, `/api/chats/${encodeURIComponent(jid)}/messages`, {
    method: 'POST',
    headers: {
      ...(await signInToChange(opened)),
      origin: `http://127.0.0.1:${port}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(body),
  })
  return { status: answer.status, answer: JSON.parse(answer.text) }
}

const history = async (opened: Opened, jid: string, query = '') => {
  const { text } = await send(opened.server.port, `/api/chats/${encodeURIComponent(jid)}/messages${query}`, {
    headers: await signIn(opened),
  })
  return entriesAnswer.parse(JSON.parse(text))
}

/** Reads server-sent events until it is told to stop. */
async function listen(opened: Opened, lastEventId?: string) {
  const events: { id: string; event: ChatEventAnswer }[] = []
  const headers: Record<string, string> = await signIn(opened)
  if (lastEventId !== undefined) headers['last-event-id'] = lastEventId
  const enough = new AbortController()
  let ended = false
  const response = await fetch(`${opened.server.url}api/events`, { headers, signal: enough.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const reading = (async () => {
    let text = ''
    for await (const part of response.body ?? []) {
      text += Buffer.from(part).toString('utf8')
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        // What is only of now has none.
        const id = /^id: (.*)$/m.exec(block)?.[1] ?? ''
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (data !== undefined) events.push({ id, event: chatEventAnswer.parse(JSON.parse(data)) })
      }
    }
  })()
    .catch((error: unknown) => {
      if (!enough.signal.aborted) throw error
    })
    .finally(() => {
      ended = true
    })
  await until('hello is said', () => events.length > 0)
  return {
    events,
    texts: () => events.flatMap(({ event }) => (event.kind === 'entry' ? [event.entry.text] : [])),
    ended: () => ended,
    async stop() {
      enough.abort()
      await reading
    },
  }
}

test('the link lets a browser in, and only the link', async () => {
  const opened = await open()
  const { port, link, isNew } = opened.server
  expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{43}$/)
  expect(isNew).toBe(true)
  const stranger = await send(port, '/')
  expect(stranger.status).toBe(401)
  expect(stranger.text).toContain('does not know this browser')
  expect((await send(port, '/api/chats')).status).toBe(401)
  expect((await send(port, '/api/events')).status).toBe(401)
  for (const token of ['', 'x', 'x'.repeat(43), `${link?.slice(-43)}x`]) {
    const answer = await send(port, `/?token=${token}`)
    expect(answer.status).toBe(401)
    expect(answer.headers['set-cookie']).toBeUndefined()
  }
  const welcome = await send(port, `/?token=${link?.slice(-43)}`)
  const [cookie = ''] = [welcome.headers['set-cookie']].flat()
  expect(cookie).toMatch(/; HttpOnly/)
  expect(cookie).toMatch(/; SameSite=Strict/)
  expect(cookie).not.toContain(link?.slice(-43))
  const headers = await signIn(opened)
  const page = await send(port, '/', { headers })
  expect(page.status).toBe(200)
  expect(page.text).toContain('<script type="module" src="/assets/console.js">')
  expect((await send(port, '/api/chats', { headers })).status).toBe(200)
  expect(
    (await send(port, '/api/chats', { headers: { cookie: `hatchway-${port}=${link?.slice(-43)}` } })).status,
  ).toBe(401)
})

test('the token is its owner’s alone, and the same after a restart', async () => {
  const opened = await open()
  const path = join(opened.data, 'state', 'web-token')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const headers = await signIn(opened)
  const token = opened.server.link?.slice(-43)
  await opened.close()
  const again = await open({ data: opened.data, config: { web: { port: opened.server.port } } })
  expect(again.server.link?.slice(-43)).toBe(token)
  expect(again.server.isNew).toBe(false)
  expect((await send(again.server.port, '/api/chats', { headers })).status).toBe(200)
  await again.close()

  // One that is no token is replaced, not trusted; who came by the one before is out.
  writeFileSync(path, 'guess\n')
  const third = await open({ data: opened.data, config: { web: { port: opened.server.port } } })
  expect((await send(third.server.port, '/api/chats', { headers })).status).toBe(401)
  expect(third.server.link?.slice(-43)).not.toBe(token)
  expect(readFileSync(path, 'utf8').trim()).toBe(third.server.link?.slice(-43))
})

test('a port that is taken is left to its owner', async () => {
  const other = createServer()
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>(resolve => other.close(() => resolve())))
  const address = other.address()
  const taken = typeof address === 'object' ? (address?.port ?? 0) : 0
  const { server } = await open({ config: { web: { port: taken } } })
  expect(server.port).not.toBe(taken)
  expect((await send(server.port, '/')).status).toBe(401)
})

test('another name for this machine is refused: it may be somebody else’s', async () => {
  const opened = await open()
  const { port } = opened.server
  const headers = await signIn(opened)
  for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', 'localhost.evil']) {
    expect((await send(port, '/api/chats', { headers: { ...headers, host } })).status).toBe(403)
    expect(
      (await send(port, `/${new URL(opened.server.link ?? '').search}`, { headers: { host } })).status,
    ).toBe(403)
  }
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
    expect((await send(port, '/', { headers: { host } })).status).toBe(401)
  }
})

test('another page cannot act for the person, nor read', async () => {
  const opened = await open()
  const { port } = opened.server
  const own = `http://127.0.0.1:${port}`
  const refused = [
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: `https://127.0.0.1:${port}` },
    { origin: `http://127.0.0.1:${port + 1}` },
    { origin: `http://localhost:${port}` },
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/json-patch+json' },
    { 'content-type': '' },
    { 'x-hatchway-csrf': '' },
    { 'x-hatchway-csrf': 'x'.repeat(43) },
  ]
  expect((await post(opened, 'local:main', { text: 'hi' }, { cookie: 'hatchway=1' })).status).toBe(401)
  for (const headers of refused) {
    expect([headers, (await post(opened, 'local:main', { text: 'hi' }, headers)).status]).toEqual([
      headers,
      403,
    ])
  }
  const headers = { ...(await signInToChange(opened)), 'content-type': 'application/json' }
  const path = '/api/chats/local%3Amain/messages'
  const body = '{"text":"hi"}'
  const status = async (more: Record<string, string>) =>
    (await send(port, path, { method: 'POST', headers: { ...headers, ...more }, body })).status
  expect(await status({})).toBe(403)
  expect(await status({ 'sec-fetch-site': 'cross-site' })).toBe(403)
  expect(await status({ 'sec-fetch-site': 'same-site' })).toBe(403)
  expect(
    (await send(port, '/api/events', { headers: { ...headers, origin: 'http://evil.example' } })).status,
  ).toBe(403)
  expect(opened.store.agents.incoming({})).toEqual([])
  expect(await status({ 'sec-fetch-site': 'same-origin' })).toBe(201)
  expect(await status({ origin: own })).toBe(201)
})

test('every answer forbids scripts that are not the page’s own, framing and sniffing', async () => {
  const opened = await open()
  const headers = await signIn(opened)
  for (const path of [
    '/',
    '/assets/console.js',
    '/icon.svg',
    '/sign-in.js',
    '/api/chats',
    '/traffic',
    '/x.js',
    '/api/x',
  ]) {
    for (const given of [headers, {}]) {
      const answer = await send(opened.server.port, path, { headers: given })
      const policy = String(answer.headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("script-src 'self'")
      expect(policy).toContain("style-src 'self'")
      expect(policy).toContain("require-trusted-types-for 'script'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
      expect(answer.headers['referrer-policy']).toBe('no-referrer')
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
    }
  }
  const stranger = await send(opened.server.port, '/')
  expect(stranger.text).not.toMatch(/<script(?![^>]*\bsrc=)/)
  expect(stranger.text).not.toMatch(/\son\w+=|style=|<form/)
  const script = await send(opened.server.port, '/sign-in.js')
  expect(script.status).toBe(200)
  expect(script.text).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write|eval\(/)
})

test('no file but the console’s own is served, and its places show its one page', async () => {
  const opened = await open()
  const headers = await signIn(opened)
  const get = (path: string) => send(opened.server.port, path, { headers })
  for (const path of [
    '/../package.json',
    '/%2e%2e/package.json',
    '/..%2fpackage.json',
    '/assets/../../package.json',
    '/assets/linked.js',
    '/assets/console.js/',
    '/assets',
    '/notes.json',
    '/package.json',
    '//etc/passwd',
    '/.env',
    '/api',
    '/api/nothing',
  ]) {
    const { status, text } = await get(path)
    expect([path, status === 404 || text.startsWith('<!doctype html><script')]).toEqual([path, true])
    expect(text).not.toContain('root:')
  }
  for (const path of ['/', '/traffic', '/tasks/7', '/chat/local%3Amain']) {
    const { status, text, headers } = await get(path)
    expect([path, status]).toEqual([path, 200])
    expect(text).toContain('/assets/console.js')
    expect(headers['cache-control']).toBe('no-store')
    expect((await send(opened.server.port, path)).status).toBe(401)
  }
  const script = await get('/assets/console.js')
  expect(script.headers['content-type']).toBe('text/javascript; charset=utf-8')
  expect(script.headers['cache-control']).toBe('no-store')
  expect((await get('/assets/chunk-Ab12Cd34.js')).headers['cache-control']).toContain('immutable')
})

test('chats are listed, the main one first, with what calls their agents and where to write', async () => {
  const opened = await open({ warning: 'The sandbox isolates nothing.' })
  const headers = await signIn(opened)
  opened.chats.typing('web:family', true)
  const { text } = await send(opened.server.port, '/api/chats', { headers })
  expect(chatsAnswer.parse(JSON.parse(text))).toMatchObject([
    { jid: 'local:main', main: true, channel: 'web', writable: true, trigger: null, typing: false },
    { jid: 'web:family', channel: 'web', writable: true, trigger: '@Hatch', typing: true },
    { jid: 'webhook:shop', channel: 'webhook', writable: false, trigger: null },
  ])
  const status = await send(opened.server.port, '/api/status', { headers })
  expect(JSON.parse(status.text)).toMatchObject({
    assistant: 'Hatch',
    warning: 'The sandbox isolates nothing.',
  })
})

test('what is written is stored for the agent, once, and shown with what the agents say', async () => {
  const opened = await open()
  expect(await post(opened, 'local:main', { text: 'hello', id: 'one' })).toEqual({
    status: 201,
    answer: { key: 'in:1', status: 'waiting' },
  })
  expect(await post(opened, 'local:main', { text: 'hello', id: 'one' })).toEqual({
    status: 200,
    answer: { key: null, status: 'waiting' },
  })
  expect(opened.kicks()).toBe(1)
  expect(await post(opened, 'web:family', { text: 'just talking' })).toMatchObject({
    answer: { status: 'context' },
  })
  await opened.say('local:main', '<b>Hi</b> <internal>hm</internal>', 'Ann')
  await opened.say('web:family', 'elsewhere')
  await opened.say('local:main', '<internal>only that</internal>')
  const { entries, more } = await history(opened, 'local:main')
  expect(more).toBe(false)
  expect(entries).toMatchObject([
    { key: 'in:1', direction: 'in', sender: 'Operator', text: 'hello', status: 'waiting' },
    { key: 'out:1', direction: 'out', sender: 'Ann', text: '<b>Hi</b>', status: 'sent' },
  ])
})

test('a long chat is shown from its end', async () => {
  const opened = await open()
  for (let i = 0; i < 30; i++) {
    await post(opened, i % 3 === 0 ? 'local:main' : 'web:family', { text: `${i}` })
  }
  const { entries, more } = await history(opened, 'local:main', '?limit=4')
  expect(more).toBe(true)
  expect(entries.map(({ text }) => text)).toEqual(['18', '21', '24', '27'])
  expect((await history(opened, 'web:family')).entries).toHaveLength(20)
})

test('what cannot be written is refused with a reason', async () => {
  const opened = await open()
  const code = async (jid: string, body: unknown) => {
    const { status, answer } = await post(opened, jid, body)
    return [status, answer.error?.code]
  }
  expect(await code('web:nobody', { text: 'hi' })).toEqual([404, 'not_found'])
  expect(await code('webhook:shop', { text: 'hi' })).toEqual([403, 'forbidden'])
  expect(await code('local:main', { text: ' ' })).toEqual([400, 'invalid_field'])
  expect(await code('local:main', { text: 'hi', sender: 'the pope' })).toEqual([400, 'invalid_field'])
  expect(await code('local:main', { text: 7 })).toEqual([400, 'invalid_field'])
  expect(await code('local:main', { text: 'x'.repeat(70_000) })).toEqual([413, 'too_large'])
})

test('whoever is connected sees what is said as it happens, and that somebody is writing', async () => {
  const opened = await open()
  const reader = await listen(opened)
  expect(reader.events[0]?.event).toEqual({ kind: 'hello', complete: true, typing: [], live_texts: [] })
  await post(opened, 'local:main', { text: 'hello' })
  opened.chats.typing('local:main', true)
  opened.chats.typing('local:main', true)
  await opened.say('local:main', 'Hi\n<script>alert(1)</script>')
  opened.chats.typing('local:main', false)
  opened.chats.groupsChanged()
  await until('all of it came', () => reader.events.length === 6)
  expect(reader.events.slice(1).map(({ event }) => event)).toMatchObject([
    { kind: 'entry', entry: { key: 'in:1', text: 'hello' } },
    { kind: 'typing', jid: 'local:main', on: true },
    { kind: 'entry', entry: { key: 'out:1', text: 'Hi\n<script>alert(1)</script>', status: 'sent' } },
    { kind: 'typing', jid: 'local:main', on: false },
    { kind: 'chats' },
  ])
  await reader.stop()
})

test('whoever comes while an agent is writing sees what it has written so far, and how it goes on', async () => {
  const opened = await open()
  const { liveTexts } = opened.chats
  const group = { folder: 'main', jid: 'local:main' }
  const first = await listen(opened)
  liveTexts.grow(group, 'Good ')
  await until('it has begun', () => first.events.length === 2)
  const second = await listen(opened, first.events[0]?.id)
  expect(second.events[0]?.event).toMatchObject({
    live_texts: [{ jid: 'local:main', text: 'Good ', tool: null }],
  })
  liveTexts.grow(group, 'morning.')
  await until('it goes on', () => second.events.length === 2)
  liveTexts.over('main')
  await opened.say('local:main', 'Good morning.')
  await until('the answer came', () => second.events.length === 4)
  expect(second.events.slice(1).map(({ event }) => event)).toMatchObject([
    { kind: 'live_text', jid: 'local:main', from: 5, text: 'morning.' },
    { kind: 'live_text', jid: 'local:main', from: 0, text: '' },
    { kind: 'entry', entry: { text: 'Good morning.' } },
  ])
  await Promise.all([first.stop(), second.stop()])
})

test('a reader that comes back gets what it missed, in order and once', async () => {
  const opened = await open()
  const first = await listen(opened)
  await opened.say('local:main', 'one')
  await until('the first came', () => first.texts().length === 1)
  await first.stop()
  await opened.say('local:main', 'two')
  await post(opened, 'local:main', { text: 'three' })
  const second = await listen(opened, first.events.at(-1)?.id)
  await until('it has caught up', () => second.texts().length === 2)
  await opened.say('local:main', 'four')
  await until('it goes on', () => second.texts().length === 3)
  expect(second.events[0]?.event).toMatchObject({ kind: 'hello', complete: true })
  expect(second.texts()).toEqual(['two', 'three', 'four'])
  await second.stop()
})

test('a reader that was away for too long, or knows another process’s numbers, is told to read again', async () => {
  const opened = await open()
  const first = await listen(opened)
  await first.stop()
  for (let i = 0; i < 1001; i++) opened.chats.typing('local:main', i % 2 === 0)
  for (const id of [
    first.events[0]?.id ?? '',
    'abc-1',
    'rubbish',
    `${first.events[0]?.id.split('-')[0]}-999999`,
  ]) {
    const reader = await listen(opened, id)
    expect(reader.events[0]?.event).toMatchObject({ kind: 'hello', complete: false })
    await reader.stop()
  }
})

test('a reader that does not keep up is sent away instead of filling the memory', async () => {
  const opened = await open()
  const enough = new AbortController()
  const response = await fetch(`${opened.server.url}api/events`, {
    headers: await signIn(opened),
    signal: enough.signal,
  })
  expect(response.status).toBe(200)
  const text = 'x'.repeat(60_000)
  for (let i = 0; i < 400; i++) {
    opened.chats.feed.publish(() => ({
      kind: 'entry',
      entry: {
        key: `out:${i}`,
        direction: 'out',
        jid: 'local:main',
        kind: 'text',
        sender: null,
        text,
        at: 0,
        status: 'sent',
        error: null,
      },
    }))
  }
  let bytes = 0
  for await (const part of response.body ?? []) bytes += part.length
  expect(bytes).toBeLessThan(400 * 60_000)
  enough.abort()
})

test('the end of the server ends the streams', async () => {
  const opened = await open()
  const reader = await listen(opened)
  await opened.close()
  await until('the stream has ended', () => reader.ended())
  await reader.stop()
})
