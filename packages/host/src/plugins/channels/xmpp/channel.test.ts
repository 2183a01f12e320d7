import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openHost } from '../../../../../testing/src/channels/host.ts'
import { createPerson } from '../../../../../testing/src/channels/xmpp/person.ts'
import { openXmpp } from '../../../../../testing/src/channels/xmpp/platform.ts'
import { isProsodyMissing } from '../../../../../testing/src/channels/xmpp/prosody.ts'
import { until } from '../../../../../testing/src/until.ts'
import { layoutOf } from '../../../base/layout.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { Incoming } from '../../../chat/channels/types.ts'
import type { ConfigInput } from '../../../config.ts'
import { createLibrary } from '../library.ts'
import { check, open } from './channel.ts'
import { xmpp } from './kind.ts'
import { xmppSettings } from './settings.ts'
import { ns } from './stanzas.ts'

const missing = isProsodyMissing() ? 'prosody' : undefined
channelContract({ kind: xmpp, open: openXmpp, missing })

const withServer = missing === undefined || process.env.CI === 'true' ? test : test.skip
const on = (what: string) => (missing === undefined ? what : `${what} (needs ${missing})`)

const optionsFor = (settings: Record<string, unknown>) => ({
  settings: xmppSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), xmpp),
  readFile: async () => undefined,
  folder: () => '/nowhere',
  assistant: 'Hatch',
  log: pino({ level: 'silent' }),
  now: Date.now,
})

/** A server, and a host with the channel whose chats have groups. */
async function begin(more: Parameters<typeof openXmpp>[0] & { config?: ConfigInput } = {}) {
  const platform = await openXmpp(more)
  onTestFinished(platform.close)
  const { settings, direct, room } = platform
  const host = async (directory?: string) => {
    const opened = await openHost({
      ...{
        kind: xmpp,
        settings,
        ...(directory && { directory }),
        ...(more.config && { config: more.config }),
      },
      groups: [
        { folder: 'main', jid: direct, main: true },
        { folder: 'room', jid: room, requires_trigger: true },
      ],
    })
    onTestFinished(opened.stop)
    await until(() => opened.channel.status?.().isConnected === true)
    return opened
  }
  const first = await host()
  const { xml } = await platform.annsApp.session()
  return { platform, host: first, again: () => host(first.directory), direct, room, ann: platform.ann, xml }
}
const sent = async (host: Awaited<ReturnType<typeof openHost>>, id: number) => {
  await until(() => host.message(id)?.status !== 'pending')
  return host.message(id)
}

describe(on('What agents say on XMPP'), () => {
  withServer('is looked for in the archive once after a restart, not for each that has waited', async () => {
    const { platform, host, again, direct } = await begin()
    await platform.down()
    const ids = Array.from({ length: 5 }, (_, i) => host.tell(direct, `waited ${i}`))
    await until(() => host.message(ids[0] ?? 0)?.error !== null)
    await host.stop()
    await platform.up()
    let asked = ''
    const between = createServer(client => {
      const server = connect(platform.server.port, '127.0.0.1')
      client.on('data', data => {
        asked += data
      })
      client.pipe(server).pipe(client)
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void between.close())
    await once(between, 'listening')
    platform.settings.server = `127.0.0.1:${(between.address() as AddressInfo).port}`
    const next = await again()
    for (const id of ids) expect(await sent(next, id)).toMatchObject({ status: 'sent' })
    expect(asked.match(/<field var="with">/g)).toHaveLength(1)
    expect((await platform.shown(direct)).map(({ text }) => text)).toEqual(ids.map((_, i) => `waited ${i}`))
  })
})

describe(on('What people said on XMPP'), () => {
  withServer(
    'moves the place in the archive only after it is stored, and comes again until it is',
    async () => {
      const platform = await openXmpp()
      onTestFinished(platform.close)
      const memory = new Map<string, string>()
      const heard: Incoming[] = []
      let attempts = 0
      const stored = Promise.withResolvers<void>()
      const channel = open(optionsFor({ ...platform.settings, rooms: [] }))
      onTestFinished(async () => channel.disconnect?.())
      await platform.say(platform.ann, platform.direct, 'before anybody was here')
      await channel.connect?.(
        hostWith({
          receive: async message => {
            if (++attempts === 1) throw new Error('the disk is full')
            await stored.promise
            heard.push(message)
            return { ok: true, id: 1, status: 'waiting' }
          },
          recall: key => memory.get(key),
          remember: (key, value) => void memory.set(key, value ?? ''),
        }),
      )
      await until(() => channel.status?.().isConnected === true)
      const before = memory.get(`read:${platform.hatch}`)
      await platform.say(platform.ann, platform.direct, 'keep this')
      await until(() => attempts === 2)
      expect(memory.get(`read:${platform.hatch}`)).toBe(before)
      stored.resolve()
      await until(() => memory.get(`read:${platform.hatch}`) !== before)
      // What was said before the channel was added is nobody's business.
      expect(heard.map(({ text }) => text)).toEqual(['keep this'])
    },
  )

  withServer('arrives after the archive has forgotten the place, in any letters, and once', async () => {
    const { platform, host, again, direct, ann } = await begin()
    // Letters of several bytes, over many packets.
    const long = '😀ü漢'.repeat(12_000)
    await platform.say(ann, direct, long)
    await until(() => host.heard(direct).length === 1)
    expect(host.heard(direct)[0]?.text).toBe(long)
    await host.stop()
    await platform.say(ann, direct, 'while away')
    const next = await again()
    next.store.chats.remember('xmpp', `read:${platform.hatch}`, JSON.stringify({ id: 'forgotten', at: 1 }))
    await next.stop()
    await platform.say(ann, direct, 'and again')
    const last = await again()
    await until(() => last.heard(direct).some(({ text }) => text === 'and again'))
    expect(last.heard(direct).map(({ text }) => text.slice(0, 20))).toEqual([
      long.slice(0, 20),
      'while away',
      'and again',
    ])
  })

  withServer('reaches us by another app of the account, and nobody can pretend that', async () => {
    const { platform, host, direct, ann, xml } = await begin()
    const other = platform.add(createPerson(platform.server, 'hatch'))
    const app = await other.session()
    const own = xml(
      'message',
      { to: ann.id, type: 'chat', id: 'own-1' },
      xml('body', {}, 'said by our other app'),
    )
    await app.deliver(own, false)
    const itself = () => other.seen.find(one => one.attrs.from?.startsWith(`${platform.hatch}/`))
    await until(() => itself() !== undefined)
    await platform.annsApp.say(
      itself()?.attrs.from ?? '',
      'chat',
      'carbon-1',
      xml('body', {}, 'to the other app'),
    )
    const forged = xml(
      'message',
      { xmlns: 'jabber:client', from: ann.id, to: platform.hatch, type: 'chat', id: 'forged' },
      xml('body', {}, 'forged'),
    )
    const inside = xml('forwarded', { xmlns: ns.forward }, forged)
    await platform.mallorysApp.say(
      platform.hatch,
      'chat',
      undefined,
      xml('received', { xmlns: ns.carbons }, inside),
    )
    await platform.mallorysApp.say(
      platform.hatch,
      'chat',
      undefined,
      xml('result', { xmlns: ns.mam, queryid: 'guessed', id: '1' }, inside),
    )
    await platform.say(ann, direct, 'last')
    await until(() => host.heard(direct).some(({ text }) => text === 'last'))
    expect(host.heard(direct).map(({ text }) => text)).toEqual(['to the other app', 'last'])
  })

  withServer('may be encrypted, an invitation, or a wish to see whether we are here', async () => {
    const { platform, host, direct, ann, xml } = await begin()
    const { annsApp, mallorysApp, hatch, server } = platform
    const subscribe = async (app: typeof annsApp) => {
      const { ask, send } = await app.session()
      // Only apps that have asked for their contacts are told what becomes of it.
      await ask('get', undefined, xml('query', { xmlns: ns.roster }))
      await send(xml('presence', { to: hatch, type: 'subscribe' }))
    }
    await subscribe(mallorysApp)
    await subscribe(annsApp)
    const approved = (app: typeof annsApp) =>
      app.seen.some(one => one.attrs.type === 'subscribed' && one.attrs.from === hatch)
    const invite = (to: string) => xml('x', { xmlns: ns.invitation, jid: to, reason: 'join us' })
    const theirs = `theirs@${server.rooms}`
    const anns = `anns@${server.rooms}`
    await mallorysApp.join(theirs)
    await annsApp.join(anns)
    await annsApp.configure(anns, { 'muc#roomconfig_whois': 'anyone' })
    await mallorysApp.say(hatch, 'chat', undefined, invite(theirs))
    expect(approved(annsApp)).toBe(false)
    await annsApp.say(
      ...([hatch, 'chat', undefined] as const),
      xml('body', {}, 'I sent you an OMEMO message'),
      xml('encrypted', { xmlns: ns.omemo }),
    )
    await annsApp.say(hatch, 'chat', undefined, invite(anns))
    await until(() => approved(annsApp))
    await until(() => annsApp.seen.some(one => one.attrs.from === `${anns}/hatch`))
    await platform.say(ann, direct, 'last')
    await until(() => host.heard(direct).length === 3)
    expect(host.heard(direct).map(({ text }) => text)).toEqual([
      expect.stringContaining('Turn encryption (OMEMO) off'),
      `[invites you to the room ${anns}: join us]`,
      'last',
    ])
    // Mallory is a stranger: nothing of this is for them.
    expect(approved(mallorysApp)).toBe(false)
    expect(mallorysApp.seen.some(one => one.attrs.from === `${theirs}/hatch`)).toBe(false)
    expect((await host.channel.chats?.())?.map(({ jid }) => jid)).toEqual(
      expect.arrayContaining([platform.room, `xmpp:${anns}`]),
    )
  })

  withServer(
    'may name files: they are fetched from where nobody can do harm, for people who are heard',
    async () => {
      const { platform, host, direct, room, ann, xml } = await begin({
        config: { groups: { room: { senders: ['nobody'] } } },
      })
      const asked: string[] = []
      const web = createServer(socket => {
        asked.push('asked')
        socket.destroy()
      }).listen(0, '127.0.0.1')
      await once(web, 'listening')
      onTestFinished(() => void web.close())
      const { port } = web.address() as AddressInfo
      const names = (url: string) => xml('x', { xmlns: ns.oob }, xml('url', {}, url))
      const addresses = [
        `http://127.0.0.1:${port}/a.txt`,
        `https://127.0.0.1:${port}/b.txt`,
        `https://localhost:${port}/c.txt`,
        `https://[::ffff:127.0.0.1]:${port}/d.txt`,
        'https://169.254.169.254/latest/meta-data',
        'file:///etc/passwd',
      ]
      for (const url of addresses)
        await platform.write(platform.annsApp, direct, undefined, xml('body', {}, url), names(url))
      const file = { name: 'x.png', content: Buffer.from('x') }
      await platform.say(platform.stranger, room, 'open this', { file })
      await until(
        () => host.heard(direct).length === addresses.length && host.chats.inbound.counts().refused > 0,
      )
      expect(host.heard(direct).map(({ text, attachments }) => [text.slice(0, 21), attachments])).toEqual(
        ['a.txt', 'b.txt', 'c.txt', 'd.txt', 'meta-data', 'passwd'].map(name => [
          `[${name} was not taken: `.slice(0, 21),
          undefined,
        ]),
      )
      expect(asked).toEqual([])
      expect(ann.id).toBe(platform.annsApp.address)
    },
  )
})

describe(on('A room on XMPP'), () => {
  withServer('knows people by their addresses, whatever they call themselves', async () => {
    const { platform, host, again, room, ann, xml } = await begin({
      config: { groups: { room: { senders: ['ann@localhost'] } } },
    })
    const { annsApp, mallorysApp, place } = platform
    await platform.say(ann, room, 'here I am')
    await until(() => host.heard(room).length === 1)
    await annsApp.leave(place)
    await until(() => mallorysApp.seen.some(one => one.attrs.type === 'unavailable'))
    // Mallory takes the nickname, whispers, and writes what only the room writes.
    await mallorysApp.join(place, 'ann')
    const forged = xml('x', { xmlns: ns.mucUser }, xml('item', { jid: 'ann@localhost/phone' }))
    await mallorysApp.say(place, 'groupchat', undefined, xml('body', {}, 'hatch: forged'), forged)
    await mallorysApp.say(`${place}/hatch`, 'chat', undefined, xml('body', {}, 'psst'))
    await until(() => host.chats.inbound.counts().refused > 0)
    await host.stop()
    await mallorysApp.say(place, 'groupchat', undefined, xml('body', {}, 'hatch: forged while away'), forged)
    await annsApp.join(place, 'anna')
    await platform.annsApp.say(place, 'groupchat', undefined, xml('body', {}, 'hatch: it is me'))
    const next = await again()
    await until(() => next.heard(room).length === 2)
    expect(next.heard(room)).toMatchObject([
      { sender: 'ann@localhost', senderName: 'ann', text: 'here I am' },
      { sender: 'ann@localhost', senderName: 'anna', text: 'it is me', status: 'waiting' },
    ])
    expect(next.store.chats.pairings()).toEqual([])
  })

  withServer('that hides addresses has nobody who is heard, and says so', async () => {
    const { platform, host, room, ann, direct } = await begin({ showsAddresses: false })
    expect(host.channel.status?.().lastError).toContain('nobody is heard there')
    expect(await host.check()).toContain('nobody is heard there')
    await platform.say(ann, room, 'hello?', { mention: true })
    await host.stop()
    const id = await platform.say(ann, room, 'hello??', { mention: true })
    expect(id).not.toBe('')
    await platform.say(ann, direct, 'last')
    const next = await openHost({
      ...{ kind: xmpp, settings: platform.settings, directory: host.directory, groups: [] },
    })
    onTestFinished(next.stop)
    await until(() => next.heard(direct).length === 1)
    expect(next.heard(room)).toEqual([])
  })

  withServer('has corrections, answers, reactions and another name, also after a restart', async () => {
    const { platform, host, again, room, ann, xml } = await begin()
    const { annsApp, place } = platform
    await annsApp.say(place, 'groupchat', 'first-1', xml('body', {}, 'hatch: buy bread'))
    const before = host.tell(room, 'working')
    await sent(host, before)
    await until(() => host.heard(room).length === 1)
    await host.stop()
    const next = await again()
    const replace = (id: string) => xml('replace', { xmlns: ns.correct, id })
    await annsApp.say(place, 'groupchat', undefined, xml('body', {}, 'buy rolls'), replace('first-1'))
    await until(() => next.heard(room)[0]?.text === 'buy rolls')
    // Nobody corrects what somebody else has said.
    await platform.mallorysApp.say(
      place,
      'groupchat',
      undefined,
      xml('body', {}, 'buy gin'),
      replace('first-1'),
    )
    await sent(next, next.tell(room, 'finished', { kind: 'edit', messageId: String(before) }))
    expect(await sent(next, next.tell(room, '👍', { kind: 'reaction' }))).toMatchObject({ status: 'sent' })
    expect((await platform.shown(room))[0]?.reactions).toEqual(['👍'])
    expect(next.heard(room)[0]?.text).toBe('buy rolls')
    const shown = (await platform.shown(room)).filter(({ isOurs }) => isOurs)
    expect(shown.map(({ text }) => text)).toEqual(['finished'])
    await platform.react(ann, room, shown[0]?.id ?? '', '🎉')
    await until(() => next.notes().some(({ text }) => text.includes('🎉') && text.includes('working')))
    await annsApp.configure(place, { 'muc#roomconfig_roomname': 'All of us' })
    await until(() => next.store.chats.known(room)?.name === 'All of us')
  })

  withServer(
    'that we are thrown out of is left alone, and what is said there fails with the reason',
    async () => {
      const { platform, host, room, xml } = await begin()
      const { annsApp, place } = platform
      const kick = xml('item', { nick: 'hatch', role: 'none' })
      const query = xml('query', { xmlns: 'http://jabber.org/protocol/muc#admin' }, kick)
      await (await annsApp.session()).ask('set', place, query)
      await until(() => host.channel.status?.().lastError?.includes('removed the assistant') === true)
      expect(host.channel.status?.().isConnected).toBe(true)
      const id = host.tell(room, 'hello?')
      await until(() => host.message(id)?.error?.includes('not in the room') === true)
    },
  )
})

describe(on('What agents say on XMPP'), () => {
  withServer('is styled, to the letter where somebody decides, and arrives whatever is in it', async () => {
    const { platform, host, direct } = await begin()
    await sent(
      host,
      host.tell(direct, '**bold** _soft_ ~~gone~~ `code` [a](https://example.org)\n\n> quoted'),
    )
    await sent(host, host.tell(direct, 'allow *this*?', { kind: 'approval' }))
    await sent(host, host.tell(direct, 'bad \u0000\u0007\u001b\ufffe\ud800 letters ]]> &amp; <b/>'))
    await sent(host, host.tell(direct, '👍', { kind: 'reaction', messageId: 'odd\u0000id' }))
    const all = (await platform.annsApp.archive(platform.annsApp.address)).map(({ message }) => message)
    const ours = all.slice(0, 3)
    expect(all[3]?.getChild('reactions')?.attrs.id).toBe('odd\ufffdid')
    expect(ours.map(one => one.getChildText('body'))).toEqual([
      '*bold* _soft_ ~gone~ `code` a (https://example.org)\n\n> quoted',
      'allow *this*?',
      'bad \ufffd\ufffd\ufffd\ufffd\ufffd letters ]]> &amp; <b/>',
    ])
    expect(ours.map(one => one.getChild('unstyled', ns.styling) !== undefined)).toEqual([false, true, false])
    expect(host.channel.status?.().isConnected).toBe(true)
  })

  withServer('fails at once where nobody will ever get it, and a file without a place is named', async () => {
    const { platform, host, direct } = await begin({ without: ['http_file_share'] })
    expect(await sent(host, host.tell('xmpp:nobody@localhost', 'hello?'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining('service-unavailable'),
    })
    const gone = { id: 'no-such-file', name: 'gone.txt', type: 'text/plain', bytes: 1 }
    await sent(host, host.tell(direct, 'look', { attachments: [gone] }))
    expect((await platform.shown(direct)).map(({ text }) => text)).toEqual([
      'look',
      '[gone.txt cannot be sent: it is no longer kept]',
    ])
  })
})

describe(on('A connection to an XMPP server'), () => {
  const reasonOf = async (settings: Record<string, unknown>): Promise<string> => {
    const reason = await check(optionsFor(settings)).then(
      () => 'it was let in',
      error => (error instanceof Error ? error.message : String(error)),
    )
    expect(reason).not.toContain('wrong-secret')
    return reason
  }

  withServer(
    'says what is wrong: password, domain, server, missing encryption, missing archive',
    async () => {
      const platform = await openXmpp({ without: ['mam'] })
      onTestFinished(platform.close)
      const { settings } = platform
      expect(await check(optionsFor(settings))).toContain('keeps no archive')
      expect(await reasonOf({ ...settings, password: 'wrong-secret' })).toContain(
        'does not take this address',
      )
      expect(await reasonOf({ ...settings, address: 'hatch@example.org' })).toContain(
        'no accounts of this domain',
      )
      expect(await reasonOf({ ...settings, server: '127.0.0.1:1' })).toContain('cannot be reached')
      // Another name for this machine, which could as well be any other's.
      expect(await reasonOf({ ...settings, server: `0.0.0.0:${platform.server.port}` })).toContain(
        'no encryption',
      )
      const channel = open(optionsFor(settings))
      onTestFinished(async () => channel.disconnect?.())
      const heard: Incoming[] = []
      await channel.connect?.(
        hostWith({
          receive: async message => {
            heard.push(message)
            return { ok: true, id: 1, status: 'waiting' }
          },
        }),
      )
      await until(() => channel.status?.().isConnected === true)
      await platform.say(platform.ann, platform.direct, 'without an archive')
      await platform.say(platform.ann, platform.room, 'in the room')
      await until(() => heard.length === 2)
    },
  )

  withServer('is encrypted, with a certificate of the domain that is trusted', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hatchway-xmpp-tls-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const tls = { key: join(folder, 'key.pem'), certificate: join(folder, 'cert.pem') }
    const elliptic = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    const names = ['-subj', '/CN=chat.test', '-addext', 'subjectAltName=DNS:chat.test']
    const files = ['-keyout', tls.key, '-out', tls.certificate]
    execFileSync('openssl', ['req', '-x509', ...elliptic, ...names, ...files], { stdio: 'ignore' })
    const { startProsody } = await import('../../../../../testing/src/channels/xmpp/prosody.ts')
    const server = await startProsody({ domain: 'chat.test', tls })
    onTestFinished(server.close)
    server.addAccount('hatch', 'hatch-secret')
    const at = `127.0.0.1:${server.port}`
    const settings = { address: 'hatch@chat.test', password: 'hatch-secret', server: at }
    expect(await reasonOf(settings)).toContain('certificate of the server cannot be trusted')
    const trusted = getCACertificates('default')
    onTestFinished(() => setDefaultCACertificates(trusted))
    setDefaultCACertificates([...trusted, readFileSync(tls.certificate, 'utf8')])
    expect(await check(optionsFor(settings))).toContain('hatch@chat.test')
  })
})

test.each([
  ['nonsense', '<stream:stream><a></b>&nonsense;'],
  ['an entity that is none', "<stream:stream xmlns='jabber:client'><a>&nonsense;</a>"],
  ['nothing at all, and goes', ''],
])('A server that says %s does no harm', async (_, words) => {
  const server = createServer(socket => socket.on('error', () => {}).end(words)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const settings = { address: 'hatch@localhost', password: 'hatch-secret', server: `127.0.0.1:${port}` }
  await expect(check(optionsFor(settings))).rejects.toThrow()
})

test.each([
  [{ address: 'hatch' }, 'address: is not an XMPP address'],
  [{ password: '' }, 'password: is empty'],
  [{ server: 'http://example.org' }, 'server: is not a server'],
  [{ rooms: 'friends' }, 'rooms.0: is not a room'],
])('settings that are wrong are named: %j', (wrong, expected) => {
  const given = { address: 'hatch@example.org', password: 'x', ...wrong }
  const [issue] = xmppSettings.safeParse(given).error?.issues ?? []
  expect(`${issue?.path.join('.')}: ${issue?.message}`).toContain(expected)
})
