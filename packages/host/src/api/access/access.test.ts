import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createLayout, layoutOf } from '../../base/layout.ts'
import { createRetries } from '../../base/retry.ts'
import { createChats } from '../../chat/chats.ts'
import { type ConfigInput, configSchema } from '../../config.ts'
import { createPositions } from '../../store/positions.ts'
import { openStore } from '../../store/sqlite.ts'
import {
  begin,
  byLink,
  byPassword,
  cookieIn,
  login,
  password,
  people,
  send,
  visitorWith,
} from '../testing.ts'
import { serveWeb } from '../web-server.ts'
import { roleByClaims } from './access.ts'
import { createAttempts } from './attempts.ts'
import { hashPassword, isPassword, nobodysPassword } from './password.ts'

const day = 86_400_000

/** The console at a time of our choice, on a directory that may have been served before. */
async function open(input: ConfigInput['web'] = {}, data = mkdtempSync(join(tmpdir(), 'hatchway-access-'))) {
  const config = { ...configSchema.parse({ web: { port: 0, ...input } }), data }
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process' })
  const log = pino({ level: 'silent' })
  const clock = { now: Date.UTC(2030, 0, 1) }
  const chats = createChats({
    store,
    config,
    positions: createPositions(store),
    said: () => {},
    retries: createRetries({ log, now: Date.now }),
    log,
    now: () => clock.now,
    kick: () => {},
  })
  const server = await serveWeb({ store, config, chats, log, now: () => clock.now })
  if (!server) throw new Error('nothing is served')
  let isOpen = true
  const close = async () => {
    if (!isOpen) return
    isOpen = false
    await server.close()
    store.close()
  }
  onTestFinished(async () => {
    await close()
    rmSync(data, { recursive: true, force: true })
  })
  const { port, link = '' } = server
  return { data, store, clock, port, link, close }
}

test('a password is known by its hash, which says how it was made', async () => {
  const hash = await hashPassword('pässwörd')
  expect(hash).toMatch(/^scrypt\$15\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
  expect(await hashPassword('pässwörd')).not.toBe(hash)
  expect(await isPassword('pässwörd', hash)).toBe(true)
  // However the keyboard writes it.
  expect(await isPassword('pässwörd'.normalize('NFD'), hash)).toBe(true)
  expect(await isPassword('passwort', hash)).toBe(false)
  expect(await isPassword('', hash)).toBe(false)
  for (const entry of [
    nobodysPassword,
    '',
    'scrypt',
    'plain$pässwörd',
    'scrypt$99$8$1$AAAA$AAAA',
    `${hash}A`,
  ]) {
    expect(await isPassword('pässwörd', entry)).toBe(false)
  }
})

test('people sign in with a name and a password, and are who they are', async () => {
  const opened = await open({ users: await people() })
  expect((await send(opened, '/api/login')).json).toEqual({ password: true, oidc: null })
  const page = await send(opened, '/')
  expect(page.status).toBe(401)
  expect(page.text).toContain('src="/sign-in.js"')
  for (const [name, given] of [
    ['vera', 'wrong'],
    ['nobody', password],
    ['__proto__', password],
  ]) {
    const answer = await login(opened, name ?? '', given)
    expect([answer.status, answer.json.error.message]).toEqual([401, 'The name or the password is wrong.'])
    expect(answer.headers['set-cookie']).toBeUndefined()
  }
  const answer = await login(opened, 'ABEL')
  expect(answer.json).toMatchObject({ name: 'Abel', role: 'approver' })
  const [cookie = ''] = [answer.headers['set-cookie'] ?? []].flat()
  expect(cookie).toMatch(/^hatchway-\d+=[\w-]{43}; .*HttpOnly; SameSite=Strict$/)
  expect(cookie).not.toContain('Secure')
  const visitor = await visitorWith(opened, cookieIn(answer))
  expect((await visitor.get('/api/me')).json).toEqual(answer.json)
  expect((await send(opened, '/api/login', { method: 'POST', body: '{}' })).status).toBe(403)
})

test('what the browser keeps is kept nowhere else', async () => {
  const opened = await open({ users: await people() })
  const { headers } = await byPassword(opened, 'ada')
  const secret = headers.cookie?.split('=')[1] ?? ''
  const rows = JSON.stringify(opened.store.webSessions.list(0))
  expect(rows).not.toContain(secret)
  expect(rows).not.toContain(headers['x-hatchway-csrf'])
  expect(rows).not.toContain(opened.link.slice(-43))
  // Nor does what is kept open anything.
  const [session] = opened.store.webSessions.list(0)
  for (const value of [session?.id, session?.idHash, session?.credential]) {
    const cookie = `hatchway-${opened.port}=${value}`
    expect((await send(opened, '/api/me', { headers: { cookie } })).status).toBe(401)
  }
})

test('a session ends thirty days after it was last used', async () => {
  const opened = await open()
  const visitor = await byLink(opened)
  opened.clock.now += 29 * day
  expect((await visitor.get('/api/me')).status).toBe(200)
  opened.clock.now += 29 * day
  expect((await visitor.get('/api/me')).status).toBe(200)
  opened.clock.now += 30 * day
  expect((await visitor.get('/api/me')).status).toBe(401)
  expect((await visitor.change('POST', '/api/logout')).status).toBe(401)
})

test('whoever signs out is out, and with them a copy of their cookie', async () => {
  const opened = await open()
  const visitor = await byLink(opened)
  const stolen = await visitorWith(opened, visitor.headers.cookie ?? '')
  expect((await stolen.get('/api/me')).status).toBe(200)
  expect((await visitor.change('POST', '/api/logout')).status).toBe(200)
  expect((await stolen.get('/api/me')).status).toBe(401)
  expect((await stolen.get('/api/chats')).status).toBe(401)
})

test('an admin sees all sessions and puts any out, which ends what it was reading', async () => {
  const opened = await open({ users: await people() })
  const admin = await byPassword(opened, 'ada')
  const viewer = await byPassword(opened, 'vera')
  const other = await byPassword(opened, 'abel')
  const stream = await begin(opened, '/api/events', { headers: { cookie: other.headers.cookie ?? '' } })
  const ended = new Promise<void>(resolve => stream.once('close', resolve))
  stream.resume()
  const all = (await admin.get('/api/sessions')).json
  expect(all.map(({ name }: { name: string }) => name).toSorted()).toEqual(['Abel', 'ada', 'vera'])
  expect(all.filter(({ current }: { current: boolean }) => current)).toMatchObject([
    { name: 'ada', role: 'admin' },
  ])
  expect((await viewer.get('/api/sessions')).json).toMatchObject([{ name: 'vera', current: true }])
  const { id } = all.find(({ name }: { name: string }) => name === 'Abel')
  expect((await viewer.change('DELETE', `/api/sessions/${id}`)).status).toBe(403)
  expect((await other.get('/api/me')).status).toBe(200)
  expect((await admin.change('DELETE', `/api/sessions/${id}`)).status).toBe(200)
  await ended
  expect((await other.get('/api/me')).status).toBe(401)
  expect((await admin.change('DELETE', `/api/sessions/${id}`)).status).toBe(404)
})

test('what somebody may do is looked up at every use: another role, another password or no entry counts at once', async () => {
  const users = await people()
  const first = await open({ users })
  const { port, data } = first
  const cookies = await Promise.all(
    ['vera', 'abel', 'ada'].map(async name => (await byPassword(first, name)).headers.cookie ?? ''),
  )
  await first.close()
  const [vera, abel] = users
  if (!vera || !abel) throw new Error('nobody')
  const again = await open(
    {
      port,
      users: [
        { ...vera, role: 'admin' },
        { ...abel, passwordHash: await hashPassword('another') },
      ],
    },
    data,
  )
  const answers = await Promise.all(
    cookies.map(cookie => send({ port: again.port }, '/api/me', { headers: { cookie } })),
  )
  expect(answers.map(({ status, json }) => [status, json.role])).toEqual([
    [200, 'admin'],
    [401, undefined],
    [401, undefined],
  ])
})

test('whoever comes by the link again stays who they are; whoever signs in is somebody new', async () => {
  const opened = await open({ users: await people() })
  const visitor = await byLink(opened)
  const again = await send(opened, `/${new URL(opened.link).search}`, { headers: visitor.headers })
  expect(again.headers['set-cookie']).toBeUndefined()
  const signedIn = await login(opened, 'vera', password, { cookie: visitor.headers.cookie ?? '' })
  expect(cookieIn(signedIn)).not.toBe(visitor.headers.cookie)
  // A cookie that somebody else may have set there before is worth nothing any more.
  expect((await visitor.get('/api/me')).status).toBe(401)
})

test('guessing takes longer each time, for the name and for the address, and a right one in between changes nothing', async () => {
  const opened = await open({ users: await people() })
  const results: number[] = []
  for (let i = 0; i < 8; i++) results.push((await login(opened, 'vera', `guess ${i}`)).status)
  expect(results).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
  const refused = await login(opened, 'vera')
  expect([refused.status, refused.json.error.code]).toEqual([429, 'quota_exceeded'])
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  // Not under another name either.
  expect((await login(opened, 'ada')).status).toBe(429)
  opened.clock.now += 1000
  expect((await login(opened, 'vera', 'guess')).status).toBe(401)
  opened.clock.now += 1000
  expect((await login(opened, 'vera')).status).toBe(429)
  opened.clock.now += 1000
  expect((await login(opened, 'vera')).status).toBe(200)
})

test('a hundred guesses at once are a hundred guesses', async () => {
  const opened = await open({ users: await people() })
  const statuses = await Promise.all(
    Array.from({ length: 30 }, async (_, i) => (await login(opened, 'vera', `guess ${i}`)).status),
  )
  expect(statuses.filter(status => status === 401)).toHaveLength(5)
})

test('attempts count by network and by name, and are forgotten after a while', () => {
  let now = 0
  const attempts = createAttempts(() => now)
  const guess = (address: string, name: string) => attempts.begin(address, name)
  for (let i = 0; i < 5; i++) expect(guess(`2001:db8::${i}`, `name ${i}`)).toBe(0)
  expect(guess('2001:db8::ffff', 'another')).toBeGreaterThan(0)
  expect(guess('2001:db8:0:0:1::1', 'another')).toBeGreaterThan(0)
  expect(guess('2001:db8:0:1::1', 'another')).toBe(0)
  for (let i = 0; i < 9; i++) expect(guess(`10.0.0.${i}`, 'another')).toBe(0)
  expect(guess('10.0.1.1', 'Another')).toBeGreaterThan(0)
  let longest = 0
  for (let i = 0; i < 40; i++) {
    const wait = guess('10.9.9.9', `${i}`)
    longest = Math.max(longest, wait)
    now += wait
  }
  expect(longest).toBe(900_000)
  now += 4_600_000
  expect(guess('10.9.9.9', 'x')).toBe(0)
  expect(guess('10.9.9.9', 'x')).toBe(0)
})

test('a provider’s word counts by the claim, and nobody has a role by accident', () => {
  const roles = { admin: ['root@example.org'], approver: ['ops'], viewer: ['*'] }
  expect(roleByClaims({ roles }, ['root@example.org'])).toBe('admin')
  expect(roleByClaims({ roles }, ['dev', 'ops'])).toBe('approver')
  expect(roleByClaims({ roles }, [])).toBe('viewer')
  expect(roleByClaims({ roles: { admin: ['a'] } }, ['A', 'b'])).toBeUndefined()
  expect(roleByClaims({ roles: {} }, ['a'])).toBeUndefined()
})
