import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { createSecretSearch } from './search.ts'

const search = createSecretSearch()
const kindsIn = async (payload: unknown) => (await search.findSecrets(payload)).map(({ kind }) => kind)
afterAll(() => search.close())

const letters = (length: number) => 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7'.repeat(8).slice(0, length)
const github = `ghp_${letters(36)}`
const pem = generateKeyPairSync('rsa', {
  modulusLength: 1024,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey

const secrets: readonly [string, string, string][] = [
  ['an AWS key’s identifier', `AKIA${'Q3EGU5NY7RZ2WKTP'}`, 'aws_access_key_id'],
  ['an AWS secret', `aws_secret_access_key = ${letters(40)}`, 'aws_secret_access_key'],
  ['a GitHub token', github, 'github_token'],
  ['a fine-grained GitHub token', `github_pat_${letters(82)}`, 'github_token'],
  ['a Slack token', `xoxb-${'1'.repeat(12)}-${'2'.repeat(12)}-${letters(24)}`, 'slack_token'],
  [
    'a Slack web hook',
    `https://hooks.slack.com/services/T01ABCDEF/B01ABCDEF/${letters(24)}`,
    'incoming_webhook',
  ],
  ['an Anthropic key', `sk-ant-api03-${letters(93)}AA`, 'anthropic_api_key'],
  ['an Anthropic session key', `sk-ant-oat01-${letters(60)}`, 'anthropic_key'],
  ['an OpenAI key', `sk-proj-${letters(100)}`, 'openai_key'],
  ['an older OpenAI key', `sk-${letters(48)}`, 'openai_key'],
  ['a Google key', `AIza${letters(35)}`, 'google_key'],
  ['a Telegram bot', `123456789:AA${letters(33)}`, 'telegram_token'],
  ['a private key', pem, 'private_key'],
  ['the beginning of an encrypted key', '-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIE', 'private_key'],
  ['a name and a password in an address', `https://anna:${letters(10)}@example.com/`, 'password_in_address'],
  ['a password with odd letters in an address', 'https://anna:p$1!x@example.com/', 'password_in_address'],
  ['a database with its password', `postgres://app:${letters(12)}@db:5432/main`, 'password_in_address'],
  ['a JSON web token', `eyJ${letters(30)}.eyJ${letters(60)}.${letters(43)}`, 'json_web_token'],
  ['a header', `Authorization: Bearer ${letters(40)}`, 'authorization'],
  ['a password in a line', 'DB_PASSWORD=hunter2!', 'password'],
  ['a password in a sentence', 'Mein Passwort: Sommer2031', 'password'],
  ['a token of npm', `npm_${letters(36)}`, 'npm_access_token'],
]

describe('secrets', () => {
  test.each(secrets)('%s is found, and not told', async (_, secret, kind) => {
    const found = await search.findSecrets({ jid: 'web:main', text: `Please use this: ${secret} thanks` })
    expect(found).toContainEqual({ kind, where: 'payload.text' })
    const told = JSON.stringify(found)
    for (const part of secret.match(/[A-Za-z0-9]{8,}/g) ?? []) expect(told).not.toContain(part)
  })

  test.each(secrets)('%s is found in base64, one layer deep', async (_, secret) => {
    const wrapped = Buffer.from(`it is ${secret} indeed`).toString('base64')
    expect(await kindsIn({ text: `see ${wrapped}` })).not.toEqual([])
    expect(await kindsIn({ text: Buffer.from(wrapped).toString('base64') })).toEqual([])
  })

  test('in hexadecimal digits, between percent signs, and in lines of base64', async () => {
    expect(await kindsIn({ text: Buffer.from(github).toString('hex') })).toContain('github_token')
    expect(
      await kindsIn({ url: `https://example.com/?q=${encodeURIComponent('password=hunter2!')}` }),
    ).toContain('password')
    const lines = Buffer.from(`${'some words before it, '.repeat(4)}${github}`)
      .toString('base64')
      .replaceAll(/.{64}/g, line => `${line}\r\n`)
    expect(await kindsIn({ text: lines })).toContain('github_token')
  })

  test('deep inside, in JSON inside JSON, and in a name', async () => {
    expect(await search.findSecrets({ a: [{ b: [1, { c: github }] }] })).toContainEqual({
      kind: 'github_token',
      where: 'payload.a[0].b[1].c',
    })
    const wrapped = JSON.stringify({ body: JSON.stringify({ login: { password: 'correct horse' } }) })
    expect(await search.findSecrets({ text: wrapped })).toContainEqual({
      kind: 'password',
      where: 'payload.text (JSON in it).body (JSON in it).login.password',
    })
    const named = await search.findSecrets({ list: { [github]: true } })
    expect(named).toContainEqual({ kind: 'github_token', where: 'payload.list.…' })
    const short = `AKIA${'QWERTYUIOPASDFGH'}`
    expect(await search.findSecrets({ [short]: 1 })).toEqual([
      { kind: 'aws_access_key_id', where: 'payload.…' },
    ])
  })

  test('split across neighbours, in two halves and in many pieces', async () => {
    const half = github.length / 2
    expect(
      await kindsIn({ one: github.slice(0, half), two: github.slice(half), three: 'and more' }),
    ).toContain('github_token')
    expect(await kindsIn({ parts: github.match(/.{1,4}/g) })).toContain('github_token')
    expect(await kindsIn({ lines: pem.split('\n') })).toContain('private_key')
  })

  test('a name and its value in two fields', async () => {
    expect(await kindsIn({ aws_secret_access_key: letters(40) })).toContain('aws_secret_access_key')
    expect(await kindsIn({ accessToken: 'four words are enough' })).toEqual(['password'])
    expect(await kindsIn({ headers: [{ name: 'Authorization', value: `Bearer ${letters(20)}` }] })).toContain(
      'authorization',
    )
    expect(await kindsIn({ env: [{ key: 'password', value: 'some words' }] })).toContain('password')
  })

  test('a text cannot say of itself that it is not to be searched', async () => {
    expect(
      await kindsIn({ text: `/* secretlint-disable */\n${github}\n// secretlint-disable-line` }),
    ).toContain('github_token')
  })
})

describe('ordinary text', () => {
  const ordinary = (name: string) =>
    readFileSync(new URL(`../../../../../docs/${name}.md`, import.meta.url), 'utf8')

  test.each<[string, unknown]>([
    ['identifiers', { id: randomUUID(), list: Array.from({ length: 50 }, () => randomUUID()) }],
    ['hashes', { commit: randomBytes(20).toString('hex'), sha256: randomBytes(32).toString('hex') }],
    ['a picture', { image: `data:image/png;base64,${randomBytes(6000).toString('base64')}` }],
    ['long words', { text: 'Donaudampfschifffahrtsgesellschaftskapitän und Rindfleischetikettierung' }],
    ['an address', { url: 'https://example.com:8443/a/b?page_token=abc123def456&sort=asc#part-2' }],
    ['a mail address', { to: 'anna.b+news@example.com', text: 'ssh git@example.com:team/repo.git' }],
    ['talk of passwords', { text: 'The password: see below. Your secret = safe. Reset token: required.' }],
    [
      'places for passwords',
      { text: 'PASSWORD=$PASSWORD password: $(get1 secret) {{SECRET_1}} api_key: <your-key-1> pw=***' },
    ],
    ['a form', { password: '', api_key: null, secret_key: '<your key>', token: 'next' }],
    ['code', { text: 'const password = getPassword(user1); if (token == other2) pwd=/home/anna1' }],
    ['nothing', undefined],
    ['a number', 42],
    ['many languages', { text: '日本語のテキスト。Привет, мир. مرحبا بالعالم. 안녕하세요' }],
    ['two pages of documentation', { one: ordinary('architecture'), two: ordinary('security') }],
  ])('%s: nothing', async (_, payload) => {
    expect(await search.findSecrets(payload)).toEqual([])
  })
})

describe('what cannot be searched counts as found', () => {
  test('what has no end', async () => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    expect(await kindsIn(circle)).toEqual(['unreadable'])
  })

  test('what is too long, too deep, or too much', async () => {
    expect(await kindsIn({ text: 'a '.repeat(2_200_000) })).toEqual(['too_large_to_search'])
    expect(await kindsIn({ text: `${'['.repeat(200)}${']'.repeat(200)}` })).toEqual(['too_large_to_search'])
    expect(await kindsIn(Array.from({ length: 200_001 }, () => 1))).toEqual(['too_large_to_search'])
  })

  test('what takes too long, while others are searched after it', async () => {
    const hasty = createSecretSearch({ patienceMs: 30 })
    const slow = hasty.findSecrets({ text: 'ghs_1_'.repeat(600_000) }, { group: 'one' })
    const quick = hasty.findSecrets({ text: 'hello' }, { group: 'two' })
    expect(await slow).toEqual([{ kind: 'too_slow_to_search', where: 'payload' }])
    // A machine that is busy enough may be too slow for anything; it is still answered.
    expect(['', 'too_slow_to_search']).toContain((await quick).map(({ kind }) => kind).join())
    await hasty.close()
  })

  test('what needs too much memory', async () => {
    const small = createSecretSearch({ memoryMb: 16, patienceMs: 60_000 })
    const found = await small.findSecrets({ list: Array.from({ length: 190_000 }, (_, i) => `${i}`) })
    expect(found).toEqual([{ kind: 'search_failed', where: 'payload' }])
    expect(await small.findSecrets({ text: 'hello' })).toEqual([])
    await small.close()
  })

  test('what is asked after the end, or was waiting for its turn', async () => {
    const closed = createSecretSearch()
    const waiting = [closed.findSecrets({ a: 1 }), closed.findSecrets({ a: 2 })]
    await closed.close()
    for (const found of [...(await Promise.all(waiting)), await closed.findSecrets({})])
      expect(found).toEqual([{ kind: 'search_failed', where: 'payload' }])
  })
})

describe('the thread', () => {
  test('a flood of tokens is told of in a few words', async () => {
    const found = await search.findSecrets({
      list: Array.from({ length: 20_000 }, () => 'xoxb-1-a1b2c3d4e5 '),
    })
    expect(found.length).toBeGreaterThan(0)
    expect(found.length).toBeLessThanOrEqual(16)
  })

  test('whoever no longer wants to know is not kept waiting, and keeps nobody waiting', async () => {
    const abort = new AbortController()
    const first = search.findSecrets({ text: 'a '.repeat(300_000) }, { group: 'one' })
    const gone = search.findSecrets({ text: github }, { group: 'two', signal: abort.signal })
    const last = search.findSecrets({ text: github }, { group: 'two' })
    abort.abort(new Error('gone'))
    await expect(gone).rejects.toThrow('gone')
    await expect(search.findSecrets({}, { signal: abort.signal })).rejects.toThrow('gone')
    expect(await first).toEqual([])
    expect(await last).not.toEqual([])
  })

  test('groups take turns', async () => {
    const order: string[] = []
    const asked = [...Array.from({ length: 5 }, () => 'busy'), 'quiet'].map(async group => {
      await search.findSecrets({ text: 'hello' }, { group })
      order.push(group)
    })
    await Promise.all(asked)
    expect(order.indexOf('quiet')).toBeLessThan(3)
  })

  test('it is there again after it was idle for too long', async () => {
    const brief = createSecretSearch({ idleMs: 1 })
    for (let round = 0; round < 3; round++) {
      expect(await brief.findSecrets({ text: github })).not.toEqual([])
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    await brief.close()
  })
})
