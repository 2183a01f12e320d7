import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openHost } from '../../../../../testing/src/channels/host.ts'
import { isNgircdMissing } from '../../../../../testing/src/channels/irc/ngircd.ts'
import { openIrc } from '../../../../../testing/src/channels/irc/platform.ts'
import { until } from '../../../../../testing/src/until.ts'
import { layoutOf } from '../../../base/layout.ts'
import { createLibrary } from '../library.ts'
import { check } from './channel.ts'
import { irc } from './kind.ts'
import { ircSettings } from './settings.ts'

const missing = isNgircdMissing() ? 'ngircd' : undefined
channelContract({ kind: irc, open: openIrc, missing })

const withServer = missing === undefined || process.env.CI === 'true' ? test : test.skip
const on = (what: string) => (missing === undefined ? what : `${what} (needs ${missing})`)

async function begin(options: Parameters<typeof openIrc>[0] = {}, settings: Record<string, unknown> = {}) {
  const platform = await openIrc(options)
  onTestFinished(platform.close)
  const host = await openHost({
    ...{ kind: irc, settings: { ...platform.settings, ...settings } },
    groups: [
      { folder: 'main', jid: platform.direct, main: true },
      { folder: 'room', jid: platform.room, requires_trigger: true },
    ],
  })
  onTestFinished(host.stop)
  await until(() => host.channel.status?.().isConnected === true)
  const { anns, direct, room } = platform
  await until(() => anns.lines.some(line => /^:hatch\S* JOIN/.test(line)))
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending' || host.message(id)?.error !== null)
    return host.message(id)
  }
  return { platform, host, sent, direct, room, anns, mallorys: platform.mallorys }
}

describe(on('People on IRC'), () => {
  withServer.each(['account-tag', 'extended-join'] as const)(
    'are heard by their accounts: %s',
    async accounts => {
      const { platform, host, sent, direct, room, anns, mallorys } = await begin({ accounts })
      if (accounts === 'extended-join') {
        // The server says who somebody is when they come.
        anns.write('PART #others')
        anns.write('JOIN #others')
      }
      await anns.say('#others', 'hatch: it is me')
      await mallorys.say('#others', 'hatch: I have no account')
      await mallorys.say('hatch', 'neither here')
      await anns.say('#others', 'among ourselves')
      await until(() => host.heard(room).length === 2)
      expect(host.heard(room)).toMatchObject([
        { sender: 'ann_account', senderName: 'ann', text: 'it is me', status: 'waiting' },
        { sender: 'ann_account', text: 'among ourselves', status: 'context' },
      ])
      expect(host.store.chats.pairings()).toEqual([])
      expect(await sent(host.tell(direct, 'for the account'))).toMatchObject({ status: 'sent' })
      // Ann leaves, and Mallory takes the nickname: what is meant for the account is not for them.
      anns.write('QUIT')
      await until(() => mallorys.lines.some(line => /^:ann\S* QUIT/.test(line)))
      platform.accounts.delete('ann')
      mallorys.write('NICK ann')
      await mallorys.settled()
      await mallorys.say('#others', 'hatch: it is me again')
      expect(await sent(host.tell(direct, 'a secret'))).toMatchObject({
        error: 'ann_account is not on the network now.',
      })
      expect(mallorys.spoken.map(({ text }) => text)).not.toContain('a secret')
      expect(host.heard(room)).toHaveLength(2)
    },
  )

  withServer('are not heard where there are no accounts, unless nicknames may count', async () => {
    const { host, room, anns } = await begin({}, { nicknames: false })
    expect(await host.check()).toContain('nobody is heard')
    expect(host.channel.status?.().lastError).toContain('nobody is heard')
    await anns.say('#others', 'hatch: hello?')
    await anns.say('hatch', 'hello?')
    await host.stop()
    expect(host.chats.inbound.counts()).toMatchObject({ waiting: 0, context: 0, refused: 0 })
    expect(room).toBe('irc:#others')
  })
})

describe(on('What is said on IRC'), () => {
  withServer('fits its lines, gives no orders, and is without formatting when it comes', async () => {
    const { host, sent, direct, anns } = await begin()
    await anns.say('hatch', 'a \u0002bold\u0002 \u000304,12red\u0003 word')
    await anns.say('hatch', '\u0001ACTION waves\u0001')
    await anns.say('hatch', '\u0001VERSION\u0001')
    await until(() => host.heard(direct).length === 2)
    expect(host.heard(direct).map(({ text }) => text)).toEqual(['a bold red word', '* ann waves'])
    const before = anns.spoken.length
    await sent(host.tell(direct, '**bold**\r\nQUIT :bye\n\u0001DCC SEND x\u0001\n:colon'))
    await sent(host.tell(direct, '😀'.repeat(300)))
    await sent(host.tell(direct, '**so**?', { kind: 'approval' }))
    const lines = anns.spoken.slice(before).map(({ text }) => text)
    expect(lines.slice(0, 1)).toEqual(['\u0002bold\u0002'])
    expect(lines.join('')).toContain('QUIT :bye')
    expect(lines.join('')).not.toContain('\u0001')
    expect(lines.filter(line => line.startsWith('😀')).join('')).toBe('😀'.repeat(300))
    expect(lines.at(-1)).toBe('**so**?')
    expect(anns.lines.every(line => Buffer.byteLength(line) <= 510)).toBe(true)
    expect(host.channel.status?.().isConnected).toBe(true)
  })

  withServer('waits where nobody has the nickname, and says what is wrong with a channel', async () => {
    const { host, sent, direct, anns } = await begin()
    anns.write('MODE #others +m')
    await anns.settled()
    expect(await sent(host.tell('irc:#others', 'moderated'))).toMatchObject({
      status: 'pending',
      error: expect.stringContaining('refused'),
    })
    anns.write('QUIT')
    await until(
      async () => (await sent(host.tell(direct, 'are you there?')))?.error?.includes('refused') === true,
    )
  })
})

const optionsFor = (settings: Record<string, unknown>) => ({
  settings: ircSettings.parse({ nickname: 'hatch', server: '127.0.0.1', tls: false, ...settings }),
  library: createLibrary(layoutOf('/nowhere'), irc),
  readFile: async () => undefined,
  folder: () => '/nowhere',
  assistant: 'Hatch',
  log: pino({ level: 'silent' }),
  now: Date.now,
})

test.each([
  ['PRIVMSG', 'PRIVMSG\r\n'],
  ['nothing', ''],
])('a server that says %s and goes does no harm', async (_, words) => {
  const server = createServer(socket => socket.on('error', () => {}).end(words)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await expect(check(optionsFor({ port }))).rejects.toThrow('The server')
})

test('a server that is not there is said to be so', async () => {
  await expect(check(optionsFor({ port: 1 }))).rejects.toThrow('cannot be reached')
})

test.each([
  [{ tls: 'no' }, 'tls: may be off only for a server on this machine.'],
  [{ nickname: 'two words' }, 'nickname: is not a nickname'],
  [{ channels: 'friends' }, 'channels.0: is not a channel'],
  [{ server: 'a b' }, 'server: is not a server'],
])('settings that are wrong are named: %j', (wrong, expected) => {
  const given = { server: 'irc.example.org', nickname: 'hatch', ...wrong }
  const [issue] = ircSettings.safeParse(given).error?.issues ?? []
  expect(`${issue?.path.join('.')}: ${issue?.message}`).toContain(expected)
})
