import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openHost } from '../../../../../testing/src/channels/host.ts'
import { call, openPerson } from '../../../../../testing/src/channels/matrix/people.ts'
import {
  type MatrixWorld,
  makeRoom,
  openMatrix,
  openWorld,
} from '../../../../../testing/src/channels/matrix/platform.ts'
import { missingSynapse } from '../../../../../testing/src/channels/matrix/synapse.ts'
import { openLive } from '../../../../../testing/src/daemon/in-process.ts'
import { openInstallation } from '../../../../../testing/src/daemon/installation.ts'
import { until } from '../../../../../testing/src/until.ts'
import { announcedSocket } from '../../../api/socket.ts'
import { layoutOf } from '../../../base/layout.ts'
import type { ApprovalCard } from '../../../chat/approvals/card.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { ChannelHost, Incoming, Outgoing } from '../../../chat/channels/types.ts'
import { overSocket } from '../../../client/over-socket.ts'
import type { ConfigInput } from '../../../config.ts'
import { openStore } from '../../../store/sqlite.ts'
import { createLibrary } from '../library.ts'
import { check, open } from './channel.ts'
import { decryptFile, encryptedFileSchema, encryptFile } from './encrypted-file.ts'
import { matrix } from './kind.ts'
import { htmlOf } from './markup.ts'
import { matrixSettings } from './settings.ts'

const missing = missingSynapse()
const isTried = missing === undefined || process.env.CI === 'true'
const attempt = isTried ? test : test.skip
const needs = missing === undefined ? '' : ` (needs ${missing})`
const log = pino({ level: process.env.HATCHWAY_TEST_LOG ?? 'silent' })

let opened: MatrixWorld | undefined
const theWorld = () => {
  if (!opened) throw new Error(`the homeserver does not run${needs}`)
  return opened
}
beforeAll(async () => {
  if (missing === undefined) opened = await openWorld()
}, 180_000)
afterAll(async () => opened?.close())

channelContract({ kind: matrix, open: () => openMatrix(theWorld()), missing })

const optionsFor = (settings: Record<string, unknown>, folder = '/nowhere') => ({
  settings: matrixSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), matrix),
  readFile: async () => undefined,
  folder: () => folder,
  assistant: 'Hatch',
  log,
  now: Date.now,
})

/** The homeserver, and a host with the channel whose chats have groups. */
async function begin(more: Parameters<typeof openMatrix>[1] & { config?: ConfigInput } = {}) {
  const platform = await openMatrix(theWorld(), more)
  onTestFinished(platform.close)
  const { settings, direct, room } = platform
  const start = async (directory?: string) => {
    const host = await openHost({
      kind: matrix,
      settings,
      groups: [
        { folder: 'main', jid: direct, main: true },
        { folder: 'room', jid: room, requires_trigger: true },
      ],
      ...(directory !== undefined && { directory }),
      ...(more.config && { config: more.config }),
    })
    onTestFinished(host.stop)
    await until(() => host.channel.status?.().isConnected === true)
    return host
  }
  const host = await start()
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending')
    return host.message(id)
  }
  const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
  /** the events of a room as the homeserver has them */
  const raw = async (room: string) => {
    const token = theWorld().ann.client.getAccessToken() ?? ''
    const path = `rooms/${encodeURIComponent(room)}/messages?dir=b&limit=100`
    const { chunk } = await call(z.object({ chunk: z.array(rawSchema) }), theWorld().url, {
      method: 'GET',
      path,
      token,
    })
    return chunk.toReversed().filter(({ sender }) => sender === platform.bot.user_id)
  }
  return { platform, host, start, sent, ours, raw, direct, room, ann: platform.ann }
}
const rawSchema = z.object({
  type: z.string(),
  sender: z.string(),
  content: z.record(z.string(), z.unknown()),
})

/** The channel alone, with a host that the test plays. */
async function alone(given: Partial<ChannelHost>, more: Parameters<typeof openMatrix>[1] = {}) {
  const platform = await openMatrix(theWorld(), more)
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-matrix-'))
  const memory = new Map<string, string>()
  const start = async () => {
    const channel = open(optionsFor(platform.settings, folder))
    onTestFinished(async () => channel.disconnect?.())
    await channel.connect?.(
      hostWith({
        recall: key => memory.get(key),
        remember: (key, value) => void (value === undefined ? memory.delete(key) : memory.set(key, value)),
        ...given,
      }),
    )
    await until(() => channel.status?.().isConnected === true)
    return channel
  }
  onTestFinished(async () => {
    await platform.close()
    rmSync(folder, { recursive: true })
  })
  return { platform, channel: await start(), start, memory, folder }
}

const sinces = ({ proxy }: Awaited<ReturnType<typeof openMatrix>>) =>
  proxy.asked.flatMap(({ path }) => {
    const url = new URL(path, 'http://host')
    return url.pathname.endsWith('/sync') ? [url.searchParams.get('since')] : []
  })

describe(`What people said on Matrix${needs}`, () => {
  attempt('is noted as read only after it is stored, and comes again until it is', async () => {
    const stored = Promise.withResolvers<void>()
    let attempts = 0
    const { platform, memory } = await alone({
      receive: async ({ text }) => {
        if (text === 'keep this' && ++attempts === 1) throw new Error('the disk is full')
        if (text === 'keep this') await stored.promise
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    const place = () => [...memory.entries()].find(([key]) => key.startsWith('since:'))?.[1]
    await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => attempts === 2)
    const before = place()
    expect(sinces(platform).at(-1)).toBe(before)
    stored.resolve()
    await until(() => place() !== before)
  })

  attempt('has no mention of the assistant in it, and quotes what it answers', async () => {
    const { platform, host, room, ann } = await begin({ isRoomEncrypted: true })
    const first = await platform.say(ann, room, 'the plants are dry')
    await platform.say(ann, room, 'see above', { mention: true, replyTo: first })
    await platform.world.ann.post(platform.otherRoom, 'm.room.message', {
      msgtype: 'm.text',
      body: '> <@ann:hatch.test> the plants are dry\n\nan older app says this',
      'm.relates_to': { 'm.in_reply_to': { event_id: first } },
    })
    await until(() => host.heard(room).length === 3)
    expect(host.heard(room)).toMatchObject([
      { text: 'the plants are dry', status: 'context' },
      {
        text: 'see above',
        status: 'waiting',
        quote: { id: first, senderName: 'Ann', text: 'the plants are dry' },
      },
      { text: 'an older app says this', status: 'context' },
    ])
  })

  attempt('is not heard from other bots; what is no text is words or a file', async () => {
    const { platform, host, room } = await begin()
    const { ann } = platform.world
    const say = (content: object, type = 'm.room.message') => ann.post(platform.otherRoom, type, content)
    await say({ msgtype: 'm.notice', body: 'I am a bot' })
    await say({ msgtype: 'm.emote', body: 'waves' })
    await say({ msgtype: 'm.location', body: 'home', geo_uri: 'geo:52.5,13.4' })
    await say({ msgtype: 'm.unheard-of', body: 'x' })
    await say({ msgtype: 'm.image', body: 'no such file', url: 'mxc://hatch.test/nothing' })
    await say({ msgtype: 'm.image', body: 'no address', url: 'https://example.org/' })
    const file = await ann.attach(platform.otherRoom, { name: 'cat.webp', content: Buffer.from('cat') })
    await say({ ...file, body: 'cat.webp' }, 'm.sticker')
    await until(() => host.heard(room).length === 5)
    const [, , gone, odd, sticker] = host.heard(room)
    expect(host.heard(room).slice(0, 2)).toMatchObject([
      { text: '* waves' },
      { text: '[location: geo:52.5,13.4 home]' },
    ])
    expect(gone?.text).toContain('[no such file was not taken:')
    expect(odd?.text).toContain('[no address was not taken:')
    expect(sticker).toMatchObject({ text: '', attachments: [{ name: 'cat.webp', bytes: 3 }] })
  })

  attempt('arrives whole after an absence in which more was said than one answer holds', async () => {
    const { platform, host, start, room } = await begin()
    await host.stop()
    const said = Array.from({ length: 70 }, (_, i) => `number ${i}`)
    const token = theWorld().ann.client.getAccessToken() ?? ''
    for (const [i, body] of said.entries()) {
      const path = `rooms/${encodeURIComponent(platform.otherRoom)}/send/m.room.message/many${i}`
      await call(z.unknown(), theWorld().url, {
        method: 'PUT',
        path,
        token,
        body: { msgtype: 'm.text', body },
      })
    }
    const next = await start(host.directory)
    await until(() => next.heard(room).length === said.length)
    expect(next.heard(room).map(({ text }) => text)).toEqual(said)
  })

  attempt('is heard whatever somebody claims to answer', async () => {
    const { platform, host, room, ann } = await begin()
    const token = theWorld().stranger.client.getAccessToken() ?? ''
    // No server takes a request for an event with such an id.
    for (const [i, event_id] of ['x'.repeat(40_000), '..', '$\u0000'].entries()) {
      const path = `rooms/${encodeURIComponent(platform.otherRoom)}/send/m.room.message/odd${i}`
      const relation = { 'm.in_reply_to': { event_id } }
      const body = { msgtype: 'm.text', body: `odd ${i}`, 'm.relates_to': relation }
      await call(z.unknown(), theWorld().url, { method: 'PUT', path, token, body })
    }
    await platform.say(ann, room, 'and now?')
    await until(() => host.heard(room).length === 4)
    expect(host.heard(room).map(({ text }) => text)).toEqual(['odd 0', 'odd 1', 'odd 2', 'and now?'])
  })

  attempt('by strangers has files that are never fetched', async () => {
    const { platform, host, room } = await begin({
      config: { groups: { room: { senders: ['@nobody:hatch.test'] } } },
    })
    await platform.say(platform.stranger, room, 'open this', {
      file: { name: 'virus.exe', content: Buffer.from('MZ') },
    })
    await until(() => host.chats.inbound.counts().refused > 0)
    expect(platform.proxy.asked.filter(({ path }) => path.includes('/media/'))).toEqual([])
  })

  attempt('in a room that was upgraded is heard in the new room, with the same group', async () => {
    const { platform, host, room, ann } = await begin()
    const { client } = platform.world.ann
    await platform.say(ann, room, 'hello')
    await until(() => host.heard(room).length === 1)
    const { replacement_room } = await client.upgradeRoom(platform.otherRoom, '11')
    // By somebody who is no inviter: the old room has named the new one.
    await client.invite(replacement_room, platform.bot.user_id)
    const next = `matrix:${replacement_room}`
    await until(() => host.store.group('room')?.jid === next)
    const id = host.tell(room, 'to the old address')
    await until(() => host.message(id)?.status === 'sent')
    expect((await platform.shown(next)).map(({ text }) => text)).toEqual(['to the old address'])
  })
})

describe(`Encryption on Matrix${needs}`, () => {
  attempt('goes on both ways after a kill, and the homeserver reads nothing', async () => {
    const { platform, host, start, ours, raw, room, ann } = await begin({ isRoomEncrypted: true })
    await platform.say(ann, room, 'before', { mention: true })
    await until(() => host.heard(room).length === 1)
    const first = host.tell(room, 'secret answer')
    await until(() => host.message(first)?.status === 'sent')
    await host.kill()
    await platform.say(ann, room, 'meanwhile', { mention: true })
    const next = await start(host.directory)
    await until(() => next.heard(room).length === 2)
    next.tell(room, 'after', {
      attachments: [],
    })
    await until(async () => (await ours(room)).length === 2)
    expect((await ours(room)).map(({ text }) => text)).toEqual(['secret answer', 'after'])
    const events = (await raw(platform.otherRoom)).filter(({ type }) => type !== 'm.room.member')
    expect(events.map(({ type }) => type)).toEqual(['m.room.encrypted', 'm.room.encrypted'])
    // One device through both lives.
    expect(new Set(events.map(({ content }) => content.device_id)).size).toBe(1)
    expect(statSync(join(host.directory, 'state', 'matrix.db')).mode & 0o777).toBe(0o600)
  })

  attempt(
    'of a daemon that is killed twice in the middle loses nothing, and is the same device',
    async () => {
      const platform = await openMatrix(theWorld())
      onTestFinished(platform.close)
      const { direct, ann } = platform
      const installation = await openInstallation({ sandbox: 'process' })
      const send = async (path: string, body: object) => {
        const { status, text } = await overSocket(announcedSocket(installation.data)).request(
          'POST',
          path,
          body,
        )
        expect({ path, status, text }).toMatchObject({ status: 201 })
      }
      await send('/groups', { folder: 'ann', jid: direct, name: 'Ann', requires_trigger: false })
      await send('/channels', { kind: 'matrix', settings: platform.settings })
      const said = Array.from({ length: 24 }, (_, i) => `thanks ${i}`)
      const syncs: { body: string; asked: number }[] = []
      let requests = 0
      let last = ''
      platform.proxy.intercept = ({ path }) => {
        if (path.includes('/sync?')) requests++
        return undefined
      }
      platform.proxy.change = ({ path }, body) => {
        if (path.includes('/sync?')) syncs.push({ body, asked: requests })
        return body
      }
      for (const [i, text] of said.entries()) {
        last = await platform.say(ann, direct, text)
        if (i % 8 !== 7 || i > 20) continue
        await installation.daemon()?.kill()
        await installation.up()
      }
      const { database } = layoutOf(installation.data)
      // Whoever asks for what comes after the last has stored it.
      await until(() => syncs.some(({ body, asked }) => body.includes(last) && requests > asked))
      await until(async () =>
        (await platform.shown(direct)).some(({ isOurs, text }) => isOurs && text.includes('welcome')),
      )
      await installation.daemon()?.stop()
      const store = openStore({ path: database, durability: 'process', prepare: false })
      onTestFinished(() => store.close())
      const stored = store.agents.incoming({}).filter(({ channel }) => channel === 'matrix')
      expect(stored.map(({ text }) => text)).toEqual(said)
      const logins = platform.proxy.asked.filter(({ path, body }) => path.includes('/login') && body !== '')
      // One to try the password, and one that lasts.
      expect(logins).toHaveLength(2)
    },
  )

  attempt('of a message whose key is late is done when the key comes, a restart later, too', async () => {
    const heard: Incoming[] = []
    const receive = async (message: Incoming) => {
      heard.push(message)
      return { ok: true, id: heard.length, status: 'waiting' } as const
    }
    const { platform, channel, start, memory } = await alone({ receive })
    const held: unknown[] = []
    let isHeld = true
    platform.proxy.change = ({ path }, body) => {
      if (!path.includes('/sync?')) return body
      const sync = JSON.parse(body)
      if (isHeld) held.push(...(sync.to_device?.events.splice(0) ?? []))
      else sync.to_device = { events: [...(sync.to_device?.events ?? []), ...held.splice(0)] }
      return JSON.stringify(sync)
    }
    await platform.say(platform.ann, platform.direct, 'the key is on its way')
    await until(() => memory.has('unreadable'))
    expect(channel.status?.().lastError).toContain('cannot be decrypted: the key has not arrived')
    await channel.disconnect?.()
    isHeld = false
    await start()
    await until(() => heard.length === 1)
    expect(heard).toMatchObject([{ text: 'the key is on its way', sender: platform.ann.id }])
    expect(memory.has('unreadable')).toBe(false)
  })

  attempt('lets nobody repeat what was said, not even the homeserver', async () => {
    const { platform, host, direct, ann } = await begin()
    const said: { type: string; event_id: string; sender: string }[] = []
    let isRepeated = false
    platform.proxy.change = ({ path }, body) => {
      if (!path.includes('/sync?')) return body
      const sync = JSON.parse(body)
      const { events } = sync.rooms?.join?.[platform.directRoom]?.timeline ?? { events: [] }
      said.push(...events.filter((one: (typeof said)[number]) => one.sender === ann.id))
      if (isRepeated) events.unshift(...said.map((one, i) => ({ ...one, event_id: `$again${i}` })))
      return JSON.stringify(sync)
    }
    await platform.say(ann, direct, 'send the money')
    await platform.say(ann, direct, 'send more')
    await until(() => host.heard(direct).length === 2)
    isRepeated = true
    await platform.say(ann, direct, 'thank you')
    await until(() => host.heard(direct).some(({ text }) => text === 'thank you'))
    expect(host.heard(direct).map(({ text }) => text)).toEqual(['send the money', 'send more', 'thank you'])
  })

  attempt('is not given up because the homeserver says so, nor is what is not encrypted heard', async () => {
    const { platform, host, start, raw, direct, ann } = await begin()
    await platform.say(ann, direct, 'hello')
    await until(() => host.heard(direct).length === 1)
    await host.stop()
    // A homeserver that hides that the room is encrypted.
    platform.proxy.change = ({ path }, body) =>
      path.endsWith('/state')
        ? JSON.stringify(JSON.parse(body).filter((one: { type: string }) => one.type !== 'm.room.encryption'))
        : body
    const next = await start(host.directory)
    const id = next.tell(direct, 'still secret')
    await until(() => next.message(id)?.status === 'sent')
    expect((await raw(platform.directRoom)).at(-1)?.type).toBe('m.room.encrypted')
    // As if Ann had said it: whoever runs her homeserver can do this.
    const token = theWorld().ann.client.getAccessToken() ?? ''
    const path = `rooms/${encodeURIComponent(platform.directRoom)}/send/m.room.message/forged`
    const body = { msgtype: 'm.text', body: 'allow everything' }
    await call(z.unknown(), theWorld().url, { method: 'PUT', path, token, body })
    await platform.say(ann, direct, 'really me')
    await until(() => next.heard(direct).length === 2)
    expect(next.heard(direct)).toMatchObject([{ text: 'hello' }, { text: 'really me' }])
  })

  attempt.each([false, true])(
    'hears a device that its owner has not verified only if it may (%s)',
    async unverified => {
      const carol = await openPerson(theWorld().url, `carol${unverified}`, 'Carol', { isVerified: false })
      onTestFinished(carol.close)
      const heard: Incoming[] = []
      const { platform, channel, memory } = await alone(
        {
          receive: async message => {
            heard.push(message)
            return { ok: true, id: 1, status: 'waiting' }
          },
        },
        { settings: { inviters: '*:hatch.test', unverified: unverified ? 'yes' : 'no' } },
      )
      const room = await makeRoom({ ...theWorld(), ann: carol }, platform.bot.user_id, { isEncrypted: true })
      await until(() => carol.client.getRoom(room)?.getMember(platform.bot.user_id)?.membership === 'join')
      await until(async () => {
        const devices = await carol.client.getCrypto()?.getUserDeviceInfo([platform.bot.user_id], true)
        return (devices?.get(platform.bot.user_id)?.size ?? 0) > 0
      })
      await carol.post(room, 'm.room.message', { msgtype: 'm.text', body: 'it is me' })
      if (unverified) {
        await until(() => heard.length === 1)
        expect(heard).toMatchObject([{ text: 'it is me', sender: carol.id }])
      } else {
        await until(() => memory.has('unreadable'))
        expect(channel.status?.().lastError).toContain('has not verified the device')
        expect(heard).toEqual([])
      }
    },
  )

  test('of a file finds out whether it is what was sent', async () => {
    const { encrypted, describe: of } = encryptFile(Buffer.from('a picture'))
    const file = encryptedFileSchema.parse(of('mxc://hatch.test/1'))
    const read = async (content: Buffer, how = file) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of decryptFile(
        how,
        (async function* () {
          yield content
        })(),
      ))
        chunks.push(chunk)
      return Buffer.concat(chunks).toString()
    }
    expect(await read(encrypted)).toBe('a picture')
    const forged = Buffer.from(encrypted)
    forged[0] = (forged[0] ?? 0) ^ 1
    await expect(read(forged)).rejects.toThrow('is not what was sent')
    await expect(read(encrypted, { ...file, key: { k: 'short' } })).rejects.toThrow('its key is none')
  })
})

describe(`Invitations on Matrix${needs}`, () => {
  attempt('of strangers ask the operator, and are accepted once the chat is let in', async () => {
    let isLetIn = false
    const heard: Incoming[] = []
    const receive = async (message: Incoming) => {
      heard.push(message)
      return isLetIn
        ? ({ ok: true, id: 1, status: 'waiting' } as const)
        : ({
            ok: false,
            error: { code: 'not_found', message: 'No group is registered for this chat.' },
          } as const)
    }
    const { platform, channel, start } = await alone({ receive })
    const { stranger } = theWorld()
    const room = await makeRoom({ ...theWorld(), ann: stranger }, platform.bot.user_id, { isEncrypted: true })
    const jid = `matrix:${room}`
    const asked = () => heard.filter(one => one.jid === jid)
    await until(() => asked().length === 1)
    expect(asked()).toMatchObject([{ sender: stranger.id, senderName: 'Mallory', text: '', mentioned: true }])
    // What the host would say to whoever asks is not said: nobody has decided about the room.
    expect(await channel.send(saying(jid, 'the operator has been asked', 1), part(1))).toBeUndefined()
    await stranger.post(room, 'm.room.message', { msgtype: 'm.text', body: 'are you there?' })
    const membership = () => stranger.client.getRoom(room)?.getMember(platform.bot.user_id)?.membership
    expect(membership()).toBe('invite')
    await channel.disconnect?.()
    isLetIn = true
    const next = await start()
    await until(() => membership() === 'join')
    // What was said since the invitation is heard.
    await until(() => heard.some(({ text }) => text === 'are you there?'))
    const id = await next.send(saying(jid, 'now I am', 2), part(2))
    await until(
      async () => (await stranger.room(room)).findEventById(String(id))?.getContent().body === 'now I am',
    )
  })

  attempt('to a room whose server is down hold up nobody, and are accepted later', async () => {
    const { platform, host, start, direct, ann } = await begin({ settings: { inviters: '*:hatch.test' } })
    await platform.say(ann, direct, 'hello')
    await until(() => host.heard(direct).length === 1)
    platform.proxy.intercept = ({ method, path }) =>
      method === 'POST' && path.endsWith('/join')
        ? { status: 502, body: { errcode: 'M_UNKNOWN', error: 'Failed to make_join via any server' } }
        : undefined
    const room = await makeRoom(theWorld(), platform.bot.user_id, { isEncrypted: false })
    const membership = () => theWorld().ann.client.getRoom(room)?.getMember(platform.bot.user_id)?.membership
    await platform.say(ann, direct, 'are you there?')
    await until(() => host.heard(direct).length === 2)
    expect(membership()).toBe('invite')
    await host.stop()
    platform.proxy.intercept = undefined
    await start(host.directory)
    await until(() => membership() === 'join')
  })

  attempt('that were withdrawn are forgotten', async () => {
    const refuse = async () =>
      ({ ok: false, error: { code: 'not_found', message: 'No group is registered for this chat.' } }) as const
    const { platform, memory } = await alone({ receive: refuse }, { settings: { inviters: [] } })
    const waiting = () => memory.get('invitations') ?? ''
    expect(waiting()).toContain(platform.directRoom)
    await platform.world.ann.client.kick(platform.directRoom, platform.bot.user_id)
    await until(() => !waiting().includes(platform.directRoom))
  })
})

const saying = (jid: string, text: string, id: number, more: Partial<Outgoing> = {}): Outgoing => ({
  ...{
    id,
    group: 'main',
    jid,
    author: 'agent',
    kind: 'text',
    text,
    sender: null,
    speech: null,
    messageId: null,
  },
  ...{
    status: 'pending',
    attempts: 0,
    nextAttemptAt: 0,
    partsSent: 0,
    partsTotal: 1,
    error: null,
    sentAt: null,
  },
  createdAt: 1,
  ...more,
})
const part = (number: number) => ({ number, of: 1, key: `hw-${number}` })

describe(`What agents say on Matrix${needs}`, () => {
  attempt('is formatted, mentions nobody, and is plain where the format would not fit', async () => {
    const { platform, host, sent, raw, ours, room } = await begin()
    await sent(host.tell(room, '**bold** <b> & [a](https://example.org) @room'))
    await sent(host.tell(room, 'just words @room'))
    const long = '&"'.repeat(3400)
    await sent(host.tell(room, `**${long}**`))
    const [formatted, words, plain] = (await raw(platform.otherRoom)).slice(-3).map(({ content }) => content)
    expect(formatted).toMatchObject({
      formatted_body: '<strong>bold</strong> &lt;b&gt; &amp; <a href="https://example.org">a</a> @room',
      'm.mentions': {},
    })
    expect(words).toEqual({ msgtype: 'm.text', body: 'just words @room', 'm.mentions': {} })
    expect(plain).toEqual({ msgtype: 'm.text', body: `**${long}**`, 'm.mentions': {} })
    expect((await ours(room)).map(({ text }) => text).at(-1)).toBe(`**${long}**`)
  })

  attempt('fits into an event whatever it is made of, changes included', async () => {
    const { host, sent, ours, direct } = await begin()
    const worst = ['\u0001'.repeat(6999), '漢'.repeat(6999), '<'.repeat(6999)]
    for (const text of worst)
      expect(await sent(host.tell(direct, `x${text}`))).toMatchObject({ status: 'sent' })
    const id = host.tell(direct, 'working')
    await sent(id)
    const edit = host.tell(direct, `y${worst[0]}`, { kind: 'edit', messageId: String(id) })
    expect(await sent(edit)).toMatchObject({ status: 'sent' })
    await sent(host.tell(direct, 'a\0b \ud800 c'))
    expect((await ours(direct)).map(({ text }) => text)).toEqual([
      ...worst.map(text => `x${text}`),
      `y${worst[0]}`,
      'a\ufffdb \ufffd c',
    ])
  })

  attempt('waits as long as the homeserver asks for, which is no failed attempt', async () => {
    const { platform, host, sent, direct } = await begin()
    let left = 1
    const body = { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 2000 }
    platform.proxy.intercept = ({ path }) =>
      path.includes('/send/') && left-- > 0 ? { status: 429, body } : undefined
    const id = host.tell(direct, 'patience')
    await until(() => host.message(id)?.error !== null)
    expect(host.channel.status?.().limitedUntil).toBeGreaterThan(0)
    expect(await sent(id)).toMatchObject({ status: 'sent', attempts: 2 })
  })

  attempt('goes out with files; one that is too large or gone is named', async () => {
    const { platform, host, sent, ours, direct, room, ann } = await begin()
    const small = Buffer.from('a picture')
    for (const [name, content] of [
      ['small.png', small],
      ['large.bin', Buffer.alloc(1_040_000)],
    ] as const)
      await platform.say(ann, direct, '', { file: { name, content } })
    await until(() => host.heard(direct).length === 2)
    const attachments = host.heard(direct).flatMap(row => row.attachments ?? [])
    const gone = { id: 'no-such-file', name: 'gone.txt', type: 'text/plain', bytes: 1 }
    // The homeserver takes less from now on.
    platform.proxy.intercept = ({ method, path }) =>
      method === 'POST' && path.includes('/upload') && uploads++ === 1
        ? { status: 413, body: { errcode: 'M_TOO_LARGE' } }
        : undefined
    let uploads = 0
    await sent(host.tell(room, 'all', { attachments: [...attachments, gone] }))
    expect((await ours(room)).map(({ text, file }) => (file ? `${file.name} ${file.bytes}` : text))).toEqual([
      'all',
      'small.png 9',
      '[large.bin is too large for this homeserver.]',
      '[gone.txt is no longer kept.]',
    ])
  })

  attempt('to a room that we are not in fails at once; a second like is none', async () => {
    const { platform, host, sent, direct, ann } = await begin()
    expect(await sent(host.tell('matrix:!nowhere:hatch.test', 'hello?'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining('Invite the assistant to the room again'),
    })
    await platform.say(ann, direct, 'done')
    await until(() => host.heard(direct).length === 1)
    for (let i = 0; i < 2; i++)
      expect(await sent(host.tell(direct, '👍', { kind: 'reaction' }))).toMatchObject({ status: 'sent' })
    expect((await platform.shown(direct))[0]?.reactions).toEqual(['👍'])
  })

  test('is HTML that cannot be more than it is meant to be', () => {
    expect(htmlOf('plain\nwords')).toBeUndefined()
    expect(htmlOf('```js"><script>\na\n\nb\n```')).toBe(
      '<pre><code class="language-js&quot;&gt;&lt;script&gt;">a\n\nb</code></pre>',
    )
    expect(htmlOf('*a* [x](javascript:alert(1)) <img src=x onerror=y>')).toBe(
      '<em>a</em> [x](javascript:alert(1)) &lt;img src=x onerror=y&gt;',
    )
    expect(htmlOf('> quote\n\n- one\n- two')).toBe('<blockquote>quote</blockquote><br><br>• one<br>• two')
  })

  attempt('has chats that can be listed', async () => {
    const { platform, host, direct, room } = await begin()
    expect(await host.channel.chats?.()).toEqual(
      expect.arrayContaining([
        { jid: direct, name: 'Ann', isGroup: false },
        { jid: room, name: 'The others', isGroup: true },
      ]),
    )
    await platform.rename(room, 'All of us')
    await until(() => host.store.chats.known(room)?.name === 'All of us')
  })
})

describe(`Reactions as buttons on Matrix${needs}`, () => {
  attempt('answer a question once, and only for those who are heard', async () => {
    const { platform, host, ours, direct, ann } = await begin({
      isRoomEncrypted: true,
      config: { groups: { main: { senders: [theWorld().ann.id] } } },
    })
    const { stranger } = platform.world
    await platform.world.ann.client.invite(platform.directRoom, stranger.id)
    await stranger.client.joinRoom(platform.directRoom)
    await host.command('main', 'q1', {
      type: 'ask_user',
      payload: { questions: [{ question: 'Tea?', options: [{ label: 'Yes' }, { label: 'No' }] }] },
    })
    host.kick()
    await until(async () => (await ours(direct)).length === 1)
    const [card] = await ours(direct)
    const id = card?.id ?? ''
    expect(card?.buttons).toEqual(['Yes', 'No'])
    await platform.press(platform.stranger, direct, id, 'No')
    await platform.react(ann, direct, id, '🎉')
    await until(() => host.notes().some(({ text }) => text.includes('🎉')))
    expect(host.sent('q1')).toEqual([])
    await platform.press(ann, direct, id, 'Yes')
    await until(async () => (await ours(direct))[0]?.buttons?.length === 0)
    expect((await ours(direct))[0]?.text).toContain('→ Yes (Ann)')
    expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Yes' }] } }])
  })

  attempt.each(['Allow', 'Deny'])('%s what an agent may not do alone, by those who may', async label => {
    const platform = await openMatrix(theWorld(), { isRoomEncrypted: true })
    onTestFinished(platform.close)
    const { direct, room, ann, stranger } = platform
    const mallory = platform.world.stranger.client
    await platform.world.ann.client.invite(platform.directRoom, stranger.id)
    await mallory.joinRoom(platform.directRoom)
    const live = await openLive({ agents: { enabled: 'no' }, groups: { main: { approvers: [ann.id] } } })
    onTestFinished(() => live.close())
    const { host } = live
    await host.addGroup({ folder: 'main', jid: direct, name: 'main', main: true, dialect: 'hatchway' })
    await host.addGroup({ folder: 'room', jid: room, name: 'room', main: false, dialect: 'hatchway' })
    await live.start()
    await host.startAgents()
    const folder = mkdtempSync(join(tmpdir(), 'hatchway-matrix-'))
    const channel = open(optionsFor(platform.settings, folder))
    const detach = await host.chats?.channels.attach(channel)
    onTestFinished(async () => {
      await detach?.()
      rmSync(folder, { recursive: true })
    })
    await until(() => channel.status?.().isConnected === true)
    host.store.transaction(transaction =>
      transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
    )
    const payload = { jid: room, text: '*secret* plan' }
    post(
      join(live.layout.ipc, 'main', 'tasks'),
      JSON.stringify({ version: 1, id: 'r-1', type: 'send_message', payload }),
      { name: createNames()() },
    )
    const shown = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
    await until(async () => (await shown(direct)).length === 1)
    const [card] = await shown(direct)
    expect(card?.buttons).toEqual(expect.arrayContaining(['Allow', 'Deny']))
    // To the letter: nothing that an agent writes is markup in what people decide about.
    expect(card?.text).toContain('*secret* plan')
    await platform.press(stranger, direct, card?.id ?? '', label)
    await platform.press(ann, direct, card?.id ?? '', label)
    await until(async () => (await shown(direct))[0]?.buttons?.length === 0)
    if (label === 'Allow') await until(async () => (await shown(room)).length === 1)
    const [approval] = host.store.approvals.list({ limit: 1 })
    expect(approval).toMatchObject({
      status: label === 'Allow' ? 'allowed' : 'denied',
      decidedBy: expect.stringContaining('Ann'),
    })
  })

  attempt('are not offered for approvals where the homeserver could press them', async () => {
    const { platform, host, sent, ours, direct } = await begin()
    const card: ApprovalCard = {
      id: '1',
      action: { name: 'send_message', summary: 'send a message', payload: { fields: [], more: 0 } },
      why: 'a test',
      status: 'open',
      decided_by: null,
      words: null,
      always: false,
      expires_at: new Date().toISOString(),
      can_decide: true,
      can_always: true,
      can_always_tool: false,
    }
    await host.channel.send(
      saying(direct, 'allow BCDFG-HJKLM', 9, { kind: 'approval', card: { kind: 'approval', card } }),
      part(9),
    )
    await sent(host.tell(direct, 'last'))
    expect(await ours(direct)).toMatchObject([{ text: 'allow BCDFG-HJKLM', reactions: [] }, { text: 'last' }])
    expect(platform.proxy.asked.filter(({ path }) => path.includes('/send/m.reaction'))).toEqual([])
  })
})

describe(`What goes wrong with Matrix${needs}`, () => {
  attempt('is said without the password or the token, and with what to do', async () => {
    const platform = await openMatrix(theWorld())
    onTestFinished(platform.close)
    const { settings, bot, proxy } = platform
    const secret = 'not-the-pässword'
    const tried = async (more: Record<string, unknown>) =>
      check(optionsFor({ ...settings, ...more })).catch(error => String(error.message))
    expect(await tried({})).toBe(`${bot.user_id} (Hatch) on ${proxy.url()}`)
    expect(await tried({ password: '', token: bot.access_token })).toContain('(Hatch)')
    const wrong = await tried({ password: secret })
    expect(wrong).toBe(`The homeserver does not know ${bot.user_id} with this password.`)
    const token = await tried({ password: '', token: 'syt_not_known_to_anybody' })
    expect(token).toContain('npx hatchway channels add matrix')
    const others = await tried({ password: '', token: bot.access_token, user: '@else:hatch.test' })
    expect(others).toBe(`This access token is of ${bot.user_id}, and not of @else:hatch.test.`)
    await proxy.down()
    const unreached = await tried({ password: secret })
    expect(unreached).toContain('The homeserver cannot be reached: ')
    expect([wrong, token, others, unreached].join()).not.toMatch(/pässword|syt_/)
    const reason = (given: Record<string, unknown>) =>
      matrixSettings.safeParse(given).error?.issues[0]?.message
    expect(reason({ ...settings, server: 'matrix.org' })).toContain('https://matrix.example.org')
    expect(reason({ ...settings, user: 'hatch' })).toContain('@hatch:example.org')
    expect(reason({ ...settings, password: '' })).toContain('either the password or an access token')
    expect(reason({ ...settings, inviters: 'ann' })).toContain('@ann:example.org')
    expect(reason({ ...settings, unverified: 'perhaps' })).toContain('neither yes nor no')
  })

  attempt(
    'with the address is set right by the domain, and a page that is no homeserver is named',
    async () => {
      const platform = await openMatrix(theWorld())
      const domain = createServer((request, response) => {
        response.statusCode = request.url === '/.well-known/matrix/client' ? 200 : 404
        response.end(JSON.stringify(answer))
      })
      let answer: object = { 'm.homeserver': { base_url: `${platform.proxy.url()}/` } }
      await new Promise<void>(resolve => domain.listen(0, '127.0.0.1', resolve))
      onTestFinished(async () => {
        domain.close()
        await platform.close()
      })
      const server = `http://127.0.0.1:${(domain.address() as AddressInfo).port}`
      expect(await check(optionsFor({ ...platform.settings, server }))).toContain(
        ` on ${platform.proxy.url()}`,
      )
      answer = {}
      await expect(check(optionsFor({ ...platform.settings, server }))).rejects.toThrow(
        /There is no homeserver at/,
      )
    },
  )

  attempt.each([
    ['for good: a new device takes over', false],
    ['softly: the same device goes on', true],
  ])('is a session that the homeserver ends, %s', async (_, isSoft) => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    const device = () => {
      const path = join(host.directory, 'state', 'matrix.db-wal')
      return readFileSync(path, 'latin1')
        .match(/"device":"(\w+)"/g)
        ?.at(-1)
    }
    const before = device()
    if (isSoft) {
      let isEnded = false
      platform.proxy.intercept = ({ path }) => {
        if (path.includes('/login')) isEnded = true
        const body = { errcode: 'M_UNKNOWN_TOKEN', error: 'expired', soft_logout: true }
        return isEnded || path.includes('/login') ? undefined : { status: 401, body }
      }
      await platform.proxy.down()
      await platform.proxy.up()
    } else {
      const { user_id, access_token } = platform.bot
      const path = 'delete_devices'
      const { devices } = await call(
        z.object({
          devices: z.array(z.object({ device_id: z.string(), display_name: z.string().nullish() })),
        }),
        theWorld().url,
        { method: 'GET', path: 'devices', token: access_token },
      )
      const auth = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user: user_id },
        password: platform.settings.password,
      }
      const named = devices.filter(one => one.display_name === 'Hatchway').map(one => one.device_id)
      await call(z.unknown(), theWorld().url, {
        method: 'POST',
        path,
        token: access_token,
        body: { devices: named, auth },
      })
    }
    await until(() => platform.proxy.asked.filter(({ path }) => path.includes('/login')).length === 2)
    await until(() => host.channel.status?.().isConnected === true)
    await platform.say(ann, direct, 'still there?')
    await until(() => host.heard(direct).length === 1)
    expect(await sent(host.tell(direct, 'yes'))).toMatchObject({ status: 'sent' })
    expect((await ours(direct)).map(({ text }) => text)).toEqual(['yes'])
    expect(device() === before).toBe(isSoft)
  })

  attempt(
    'is an account with an identity from another app: it is kept unless it is to be replaced',
    async () => {
      const platform = await openMatrix(theWorld(), { settings: { inviters: [] } })
      const dave = await openPerson(theWorld().url, 'dave', 'Dave')
      onTestFinished(async () => {
        await platform.close()
        await dave.close()
      })
      const identity = async () => {
        const devices = dave.client.getCrypto()
        return devices?.getCrossSigningKeyId()
      }
      const master = async () => {
        const body = { device_keys: { [dave.id]: [] } }
        const token = dave.client.getAccessToken() ?? ''
        const schema = z.object({
          master_keys: z.record(z.string(), z.object({ keys: z.record(z.string(), z.string()) })),
        })
        const { master_keys } = await call(schema, theWorld().url, {
          method: 'POST',
          path: 'keys/query',
          body,
          token,
        })
        return Object.values(master_keys[dave.id]?.keys ?? {})[0]
      }
      const before = await master()
      expect(before).toBe(await identity())
      for (const reset of ['no', 'yes']) {
        const folder = mkdtempSync(join(tmpdir(), 'hatchway-matrix-'))
        const channel = open(optionsFor({ ...platform.settings, user: dave.id, reset }, folder))
        await channel.connect?.(hostWith())
        await until(() => channel.status?.().isConnected === true)
        const problem = channel.status?.().lastError
        await channel.disconnect?.()
        rmSync(folder, { recursive: true })
        if (reset === 'no') expect(problem).toContain('has an identity from another app')
        else expect(problem).toBeUndefined()
        expect((await master()) === before).toBe(reset === 'no')
      }
    },
  )
})
