import { describe, expect, test } from 'vitest'
import { createLogger } from './logger.ts'
import { createRedaction } from './redaction.ts'
import { bounded } from './testing.ts'

function open(environment: NodeJS.ProcessEnv = {}) {
  const lines: string[] = []
  const log = createLogger({ logLevel: 'info' }, { environment, write: line => lines.push(line) })
  return { log, text: () => lines.join(''), last: () => JSON.parse(lines.at(-1) ?? '{}') }
}

describe('a secret does not reach the log', () => {
  const key = `sk-ant-api03-${'Ab1_'.repeat(20)}`
  test.each([
    ['in the message of an error', key],
    ['of GitHub', `ghp_${'a1B2'.repeat(9)}`],
    ['of a chat', 'xoxb-1234567890-abcdefghijkl'],
    ['of a cloud', 'AKIAIOSFODNN7EXAMPLE'],
    ['of a bot', '1234567890:AAF_abcdefghijklmnopqrstuvwxyz012345'],
    ['that is a signed token', `eyJhbGciOiJIUzI1NiJ9.${'eyJzdWIi'.repeat(4)}.${'c2lnbmF0'.repeat(4)}`],
    [
      'that is a private key',
      `-----BEGIN RSA PRIVATE KEY-----\n${'QUJD\n'.repeat(20)}-----END RSA PRIVATE KEY-----`,
    ],
    ['that is a hash of a password', `scrypt$15$8$1$${'a'.repeat(22)}$${'b'.repeat(43)}`],
  ])('%s', (_, secret) => {
    const { log, text } = open()
    log.error({ err: new Error(`the request failed: ${secret} was refused`) }, `because of ${secret}`)
    log.info({ deep: { list: [{ about: secret }] } })
    const visible = secret.split('\n')[1] ?? secret
    expect(text()).not.toContain(visible)
    expect(text()).toContain('[redacted]')
    expect(text()).toContain('was refused')
  })

  test('where its place tells what it is', () => {
    const { log, text, last } = open()
    log.warn(
      {
        headers: { authorization: 'Basic YW5hOnNlc2FtZQ==', cookie: 'hatchway=abcdef' },
        password: 'sesame!',
      },
      'GET http://127.0.0.1:7717/?token=Zm9vYmFyYmF6cXV4 with Bearer abcdefghijklmnop, dav at https://ana:sesame42@dav.example.org/, x-api-key: short-one',
    )
    for (const secret of [
      'YW5hOnNlc2FtZQ',
      'hatchway=abcdef',
      'sesame',
      'Zm9vYmFyYmF6',
      'abcdefghijklmnop',
      'short-one',
    ])
      expect(text()).not.toContain(secret)
    expect(last()).toMatchObject({ msg: expect.stringContaining('https://ana:[redacted]@dav.example.org/') })
  })

  test('that stands in the environment, however it looks', () => {
    const { log, text } = open({
      ANTHROPIC_API_KEY: 'plain words "quoted"',
      CALENDAR_PASSWORD: 'correct horse',
      HOME: '/home/ana',
      SHORT_KEY: 'it',
    })
    log.error(
      { err: new Error('401 for plain words "quoted"') },
      'correct horse battery staple in /home/ana, and it stays',
    )
    expect(text()).not.toMatch(/plain words|correct horse/)
    expect(text()).toContain('/home/ana, and it stays')
  })
})

test('ordinary lines stay as they are, and stay JSON', () => {
  const { log, last } = open()
  const line = {
    group: 'family',
    runs: ['0199c0de-7b7e-7000-8000-000000000000'],
    file: '1769900000000-000001-0a1b2c3d.json',
    hash: 'a'.repeat(64),
  }
  log.info(line, 'tokens: 12, key presses: 3; the secret garden; see https://example.org/?page=2')
  expect(last()).toMatchObject({
    ...line,
    msg: 'tokens: 12, key presses: 3; the secret garden; see https://example.org/?page=2',
  })
})

test('what cannot be seen, or turns round what can, is written as what it is', () => {
  const { log, text, last } = open()
  const tricks =
    '\u202egnp.exe\u202c \u2066x\u2069 \u200b\ufeff\u009b31m\u007f\u2028 \u{e0041} \u001b[2J ümläut 漢字'
  log.info({ error: tricks }, tricks)
  expect(text()).not.toMatch(/[^\P{Cc}\n]|\p{Cf}|\u2028/u)
  expect(text()).toContain('ümläut 漢字')
  expect(last()).toMatchObject({ error: tricks, msg: tricks })
})

test('a long line costs little however it is made', () => {
  const redacted = createRedaction({})
  for (const part of ['eyJ-', 'eyJabcdefgh.', '-----BEGIN PRIVATE KEY-----', 'token=', 'a://b:', 'xoxb-']) {
    const line = part.repeat(Math.ceil(3_000_000 / part.length))
    expect(bounded(() => redacted(line)).length).toBeGreaterThan(0)
  }
})
