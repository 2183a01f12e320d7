import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { failures } from '../../../../../testing/src/channels/discord/failure.ts'
import { openDiscord } from '../../../../../testing/src/channels/discord/platform.ts'
import { type GroupInChat, openHost } from '../../../../../testing/src/channels/host.ts'
import { openLive } from '../../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../../testing/src/until.ts'
import { layoutOf } from '../../../base/layout.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { Incoming, Outgoing } from '../../../chat/channels/types.ts'
import type { ConfigInput } from '../../../config.ts'
import { createLibrary } from '../library.ts'
import { check, open } from './channel.ts'
import { discord } from './kind.ts'
import { discordSettings } from './settings.ts'

channelContract({ kind: discord, open: openDiscord })

const optionsFor = (settings: Record<string, unknown>) => ({
  settings: discordSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), discord),
  readFile: async () => undefined,
  folder: () => '/nowhere',
  assistant: 'Hatch',
  log: pino({ level: 'silent' }),
  now: Date.now,
})

/** The stand-in, and a host with the channel whose chats have groups. */
async function begin(
  more: Parameters<typeof openDiscord>[0] & {
    config?: ConfigInput
    groups?: readonly GroupInChat[]
    before?(platform: Awaited<ReturnType<typeof openDiscord>>): void
  } = {},
) {
  const platform = await openDiscord(more)
  onTestFinished(platform.close)
  more.before?.(platform)
  const { settings, direct, room } = platform
  const groups = [
    { folder: 'main', jid: direct, main: true },
    { folder: 'room', jid: room, requires_trigger: true },
  ]
  const openOn = async (directory?: string) => {
    const host = await openHost({
      kind: discord,
      settings,
      groups,
      ...(directory && { directory }),
      ...(more.config && { config: more.config }),
    })
    onTestFinished(host.stop)
    await until(() => host.channel.status?.().isConnected === true)
    return host
  }
  const host = await openOn()
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending')
    return host.message(id)
  }
  const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
  const heard = (jid: string) => host.heard(jid).map(({ text }) => text)
  return { platform, host, openOn, sent, ours, heard, direct, room, ann: platform.ann }
}

/** The channel alone, with a host that the test plays. */
async function alone(given: Parameters<typeof hostWith>[0]) {
  const platform = await openDiscord()
  const channel = open(optionsFor(platform.settings))
  onTestFinished(async () => {
    await channel.disconnect?.()
    await platform.close()
  })
  await channel.connect?.(hostWith(given))
  await until(() => channel.status?.().isConnected === true)
  return { platform, channel }
}

const opcodes = ({ api }: Awaited<ReturnType<typeof openDiscord>>) =>
  api.gateway.sent.map(({ op }) => op).filter(op => op !== 1)
const identify = 2
const resume = 6

describe('The connection to Discord', () => {
  test('is resumed when it is lost, and brings what was missed', async () => {
    const { platform, host, direct, heard, ann } = await begin()
    await platform.say(ann, direct, 'before')
    await until(() => heard(direct).length === 1)
    platform.api.gateway.cut()
    await platform.say(ann, direct, 'meanwhile')
    await until(() => heard(direct).length === 2)
    platform.api.gateway.write({ op: 7, d: null })
    await platform.say(ann, direct, 'after')
    await until(() => heard(direct).length === 3)
    await until(() => opcodes(platform).length === 3)
    expect(heard(direct)).toEqual(['before', 'meanwhile', 'after'])
    expect(opcodes(platform)).toEqual([identify, resume, resume])
    await until(() => host.channel.status?.().isConnected === true)
    expect(platform.api.calls.filter(({ path }) => path.includes('after'))).toEqual([])
  })

  test('begins anew when Discord has forgotten the session, and asks for what was missed', async () => {
    const { platform, direct, room, heard, ann } = await begin()
    await platform.say(ann, direct, 'before')
    await platform.say(ann, room, 'before')
    await until(() => heard(direct).length + heard(room).length === 2)
    platform.api.gateway.sessions.clear()
    platform.api.gateway.cut()
    const missed = Array.from({ length: 230 }, (_, i) => `missed ${i}`)
    for (const text of missed) await platform.say(ann, direct, text)
    await platform.say(ann, room, 'in a thread', { thread: 'new' })
    await platform.say(ann, room, 'in the channel')
    await until(() => heard(direct).length === 231 && heard(room).length === 3)
    expect(heard(direct)).toEqual(['before', ...missed])
    expect(new Set(heard(room))).toEqual(new Set(['before', 'in the channel', 'in a thread']))
    expect(opcodes(platform)).toEqual([identify, resume, identify])
    // Nothing of it comes again.
    platform.api.gateway.sessions.clear()
    platform.api.gateway.cut()
    await until(() => opcodes(platform).length === 5)
    await platform.say(ann, room, 'last')
    await until(() => heard(room).includes('last'))
    expect(heard(direct)).toHaveLength(231)
    expect(heard(room)).toHaveLength(4)
  })

  test('is kept by heartbeats, and made anew when nobody answers them', async () => {
    const { platform, direct, heard, ann } = await begin({ heartbeatMs: 150 })
    const beats = () => platform.api.gateway.sent.filter(({ op }) => op === 1).length
    await until(() => beats() >= 4)
    expect(opcodes(platform)).toEqual([identify])
    platform.api.gateway.state.isDeaf = true
    await platform.say(ann, direct, 'can you hear me')
    await until(() => platform.api.gateway.connections() === 0)
    platform.api.gateway.state.isDeaf = false
    await until(() => heard(direct).length === 1)
    expect(opcodes(platform)).toContain(resume)
  })

  test('is begun no more often than Discord allows', async () => {
    const { platform, host } = await begin({
      before: ({ api }) => {
        api.gateway.state.maxConcurrency = 1
        api.gateway.state.lagMs = 300
      },
    })
    platform.api.gateway.state.lagMs = 0
    const begun = () => platform.api.gateway.sent.filter(({ op }) => op === identify)
    platform.api.gateway.sessions.clear()
    platform.api.gateway.cut()
    await until(() => platform.api.gateway.sessions.size === 1)
    expect(begun()).toHaveLength(2)
    platform.api.gateway.sessions.clear()
    platform.api.gateway.state.remaining = 0
    platform.api.gateway.cut()
    await until(() => host.channel.status?.().lastError?.includes('connected too often today') === true)
    expect(begun()).toHaveLength(2)
  })

  test('leaves nothing behind, even where Discord never answered', async () => {
    const { platform, channel } = await alone({})
    await channel.disconnect?.()
    await until(() => platform.api.gateway.connections() === 0)
    expect(platform.api.gateway.sessions.size).toBe(0)
    const { gateway } = platform.api
    gateway.state.isSilent = true
    const unheard = open(optionsFor(platform.settings))
    await unheard.connect?.(hostWith())
    await until(() => gateway.unanswered.size === 1)
    await unheard.disconnect?.()
    await until(() => gateway.unanswered.size === 0)
    gateway.state.isSilent = false
    const calls = platform.api.calls.length
    await platform.say(platform.ann, platform.direct, 'anybody there?')
    expect(gateway.connections()).toBe(0)
    expect(platform.api.calls).toHaveLength(calls)
  })
})

describe('What people said on Discord', () => {
  test('counts as read only after it is stored', async () => {
    const stored = Promise.withResolvers<void>()
    const heard: Incoming[] = []
    const memory = new Map<string, string | undefined>()
    const { platform } = await alone({
      receive: async message => {
        heard.push(message)
        await stored.promise
        return { ok: true, id: 1, status: 'waiting' }
      },
      remember: (key, value) => void memory.set(key, value),
    })
    const id = await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => heard.length === 1)
    const key = `after:${platform.direct.replace('discord:', '')}`
    expect(memory.get(key)).toBeUndefined()
    stored.resolve()
    await until(() => memory.get(key) === id)
  })

  test('waits until the host can store it, in its order, and is not forgotten meanwhile', async () => {
    let attempts = 0
    const heard: string[] = []
    const { platform, channel } = await alone({
      receive: async ({ text }) => {
        if (++attempts < 3) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
        heard.push(text)
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await platform.say(platform.ann, platform.direct, 'first')
    await platform.say(platform.ann, platform.direct, 'second')
    await until(() => channel.status?.().lastError === 'the disk is full')
    await until(() => heard.length === 2)
    expect(heard).toEqual(['first', 'second'])
  })

  test('names people instead of ids, and not the assistant', async () => {
    const { platform, host, heard, room, ann, direct } = await begin()
    const { world } = platform.api
    const everybody = [world.bot, ...world.users.values()]
    const here = platform.channelOf(room)
    const says = (content: string, more = {}) =>
      platform.post(ann, here, { content, mentions: everybody, ...more })
    says(`<@!${world.bot.id}> greet <@${platform.stranger.id}> <:wave:123456789012345678>`)
    says(`<@&${platform.guild.role}> by its role`, { mentions: [], mention_roles: [platform.guild.role] })
    says('', {
      message_snapshots: [{ message: { content: 'news' } }],
      sticker_items: [{ id: '1', name: 'Hi' }],
    })
    await until(() => heard(room).length === 3)
    expect(heard(room)).toEqual(['greet @Mallory :wave:', 'by its role', '[forwarded: news]\n[sticker: Hi]'])
    expect(host.heard(room).map(({ status }) => status)).toEqual(['waiting', 'waiting', 'waiting'])
    // Neither bots, nor webhooks, nor notices of Discord's own are people.
    says('I am a bot', { author: { ...world.bot, id: world.nextId() } })
    says('I am a webhook', { webhook_id: world.nextId() })
    says('joined the server', { type: 7 })
    says('created a thread', { type: 18 })
    await platform.say(ann, direct, 'done')
    await platform.say(ann, room, 'done')
    await until(() => heard(room).length + heard(direct).length > 4)
    expect(heard(room).slice(3)).toEqual(['done'])
  })

  test('in a message that mentions nobody is not read without the intent, and `check` says so', async () => {
    const { platform, host, heard, room, direct, ann } = await begin({
      before: ({ api }) => {
        api.world.application.flags = 0
      },
    })
    expect(await host.check()).toContain('the Message Content Intent is off')
    await platform.say(ann, room, 'among ourselves')
    await platform.say(ann, room, 'to you', { mention: true })
    await platform.say(ann, direct, 'to you alone')
    await until(() => heard(room).length + heard(direct).length === 2)
    expect(heard(room)).toEqual(['to you'])
  })

  test('may lose its file, and is told so', async () => {
    const { platform, heard, direct, ann } = await begin()
    const { world, gateway } = platform.api
    gateway.state.isDeaf = true
    await platform.say(ann, direct, 'look', { file: { name: 'gone.txt', content: Buffer.from('x') } })
    world.files.clear()
    gateway.state.isDeaf = false
    gateway.cut()
    await until(() => heard(direct).length === 1)
    expect(heard(direct)).toEqual(['look\n[gone.txt was not taken: the file was not given: 404]'])
  })

  test('by strangers has files that are never fetched', async () => {
    const { platform, host, room } = await begin({ config: { groups: { room: { senders: ['501'] } } } })
    await platform.say(platform.stranger, room, 'open this', {
      file: { name: 'virus.exe', content: Buffer.from('MZ') },
    })
    await until(() => host.chats.inbound.counts().refused > 0)
    expect(platform.api.calls.filter(({ path }) => path.startsWith('/attachments'))).toEqual([])
  })

  test('changes only when a person changes it', async () => {
    const { platform, heard, room, ann } = await begin()
    const ids = await Promise.all(['one', 'two', 'three'].map(text => platform.say(ann, room, text)))
    await until(() => heard(room).length === 3)
    const [channel, message] = platform.placeOf(room, ids[0] ?? '')
    const { gateway } = platform.api
    gateway.dispatch('MESSAGE_UPDATE', { ...message, content: 'one with a preview' }, channel)
    await platform.edit(platform.stranger, room, ids[1] ?? '', 'two, changed')
    gateway.dispatch('MESSAGE_DELETE_BULK', { ids: [ids[2], '1'], channel_id: channel.id }, channel)
    await until(() => heard(room)[2] === '[taken back]')
    expect(heard(room)).toEqual(['one', 'two, changed', '[taken back]'])
  })

  test('in a thread while nobody was there is found, whether the thread is new, known or archived', async () => {
    const { platform, host, openOn, room, ann } = await begin()
    const known = platform.thread(room)
    const archived = platform.thread(room)
    for (const { id } of [known, archived]) await platform.say(ann, room, 'hello', { thread: id })
    await platform.say(ann, room, 'hello')
    await until(() => host.heard(room).length === 3)
    await host.stop()
    await platform.say(ann, room, 'new', { thread: 'new' })
    await platform.say(ann, room, 'known', { thread: known.id })
    await platform.say(ann, room, 'archived', { thread: archived.id })
    archived.isArchived = true
    const next = await openOn(host.directory)
    await until(() => next.heard(room).length === 6)
    expect(
      next
        .heard(room)
        .slice(3)
        .map(({ text, thread }) => `${text} ${thread === archived.id}`)
        .toSorted(),
    ).toEqual(['archived true', 'known false', 'new false'])
  })
})

describe('A chat on Discord', () => {
  test('in which only the assistant has spoken so far is read after an absence', async () => {
    const { platform, host, openOn, sent, room, ann } = await begin()
    const id = host.tell(room, 'good morning')
    await sent(id)
    const key = `after:${room.replace('discord:', '')}`
    await until(() => host.store.chats.recall('discord', key) !== undefined)
    await host.stop()
    await platform.say(ann, room, 'good morning to you')
    const next = await openOn(host.directory)
    await until(() => next.heard(room).length === 1)
  })

  test('is listed with its server, and has another name once it is renamed', async () => {
    const { platform, host, room, ann } = await begin()
    platform.api.world.addChannel({ type: 4, name: 'A category', guild_id: platform.guild.id })
    expect(await host.channel.chats?.()).toEqual([
      { jid: room, name: '#general · The others', isGroup: true },
    ])
    await platform.say(ann, room, 'hello')
    await until(() => host.heard(room).length === 1)
    await platform.rename(room, 'all-of-us')
    await until(() => host.store.chats.known(room)?.name === '#all-of-us · The others')
  })

  test('is listed with the time of what was said there last', async () => {
    const { platform, host, openOn, room, ann } = await begin()
    const at = Date.now()
    await platform.say(ann, room, 'hello')
    await host.stop()
    const next = await openOn(host.directory)
    await until(async () => (await next.channel.chats?.())?.length === 1)
    const [chat] = (await next.channel.chats?.()) ?? []
    expect(chat?.lastActivity).toBeGreaterThanOrEqual(at)
    expect(chat?.lastActivity).toBeLessThanOrEqual(Date.now())
  })

  test('that takes nothing fails what is sent there at once', async () => {
    const { platform, host, sent, room } = await begin()
    platform.channelOf(room).denied.add('send')
    expect(await sent(host.tell(room, 'hello?'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining('Give the bot the permissions'),
    })
    expect(await sent(host.tell('discord:123456789012345678', 'hello?'))).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('Unknown Channel'),
    })
  })

  test('whose thread is locked or gone gets the answer outside of it', async () => {
    const { platform, host, sent, ours, room } = await begin()
    const thread = platform.thread(room)
    thread.isLocked = true
    await sent(host.tell(room, 'locked', { thread: thread.id }))
    await sent(host.tell(room, 'gone', { thread: '123456789012345678' }))
    expect((await ours(room)).map(({ text, thread: at }) => [text, at])).toEqual([
      ['locked', undefined],
      ['gone', undefined],
    ])
  })
})

describe('What agents say on Discord', () => {
  test('calls nobody, when it is said and when it is changed', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    const loud = `@everyone @here <@${ann.id}> <@&${platform.guild.role}> \`<@${ann.id}>\``
    const id = host.tell(room, loud)
    await sent(id)
    await sent(host.tell(room, loud, { sender: 'Writer' }))
    await sent(host.tell(room, `changed ${loud}`, { kind: 'edit', messageId: String(id) }))
    const shown = await ours(room)
    expect(shown.map(({ text }) => text)).toEqual([
      `changed ${loud.replaceAll('`', '')}`,
      loud.replaceAll('`', ''),
    ])
    for (const { id: at } of shown)
      expect(platform.placeOf(room, at)[1]).toMatchObject({
        mentions: [],
        mention_roles: [],
        mention_everyone: false,
        flags: 4,
      })
  })

  test('arrives as it was written where its signs would take too much room', async () => {
    const { host, sent, ours, direct } = await begin()
    const long = '*_'.repeat(900)
    await sent(host.tell(direct, long))
    const shown = (await ours(direct)).map(({ text }) => text)
    expect(shown.join('').replaceAll(/[*_]/g, '')).toBe('')
    expect(shown).toHaveLength(1)
  })

  test('waits as long as Discord asks for, which is no failed attempt', async () => {
    const { platform, host, sent, direct } = await begin()
    platform.api.refusals.push(failures.limited(1.5))
    const id = host.tell(direct, 'patience')
    await until(() => host.message(id)?.error !== null)
    expect(host.channel.status?.().limitedUntil).toBeGreaterThan(0)
    expect(await sent(id)).toMatchObject({ status: 'sent', attempts: 2 })
  })

  test('is not even tried while a limit holds, for one chat or for all', async () => {
    const { platform, host, sent, ours, direct, room } = await begin()
    const deliveries = () =>
      platform.api.calls.filter(({ method, path }) => method === 'POST' && path.endsWith('/messages'))
    Object.assign(platform.api.limit, { perRoute: 2, seconds: 1 })
    const ids = Array.from({ length: 6 }, (_, i) => host.tell(direct, `number ${i}`))
    for (const id of ids) await sent(id)
    expect(deliveries()).toHaveLength(6)
    platform.api.limit.perRoute = 1000
    platform.api.refusals.push(failures.limited(1, true))
    const first = host.tell(direct, 'everybody has to wait')
    await until(() => host.message(first)?.error !== null)
    const second = host.tell(room, 'me, too')
    await until(() => host.message(second)?.error !== null)
    expect(deliveries()).toHaveLength(7)
    for (const id of [first, second]) await sent(id)
    expect(await ours(direct)).toHaveLength(7)
  })

  test('is delivered once under its key, and is not taken for the words of another host', async () => {
    const { platform, channel } = await alone({})
    const other = open(optionsFor(platform.settings))
    const row = {
      jid: platform.direct,
      text: 'once',
      sender: null,
      kind: 'text',
      messageId: null,
    } as Outgoing
    const part = { number: 1, of: 1, key: 'hw1-1' }
    const first = await channel.send(row, part)
    expect(await channel.send(row, part)).toBe(first)
    expect(await channel.send({ ...row, jid: platform.room }, part)).not.toBe(first)
    expect(await other.send(row, part)).not.toBe(first)
    expect(await platform.shown(platform.direct)).toHaveLength(2)
    await other.disconnect?.()
  })

  test('goes out with files; one that is too large or gone is named', async () => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    await platform.say(ann, direct, 'a', { file: { name: 'a.txt', content: Buffer.from('a') } })
    const large = Buffer.alloc(10 * 1024 * 1024 + 1)
    await platform.say(ann, direct, 'b', { file: { name: 'large.bin', content: large } })
    await until(() => host.heard(direct).length === 2)
    const attachments = host.heard(direct).flatMap(row => row.attachments ?? [])
    const missing = { id: 'no-such-file', name: 'gone.txt', type: 'text/plain', bytes: 1 }
    // The text arrives, and its first file does not, at first.
    platform.api.refusals.push(undefined, failures.badGateway())
    await sent(host.tell(direct, 'all', { attachments: [...attachments, missing] }))
    expect((await ours(direct)).map(({ text, file }) => file?.name ?? text)).toEqual([
      'all',
      'a.txt',
      '[large.bin is too large for Discord: a bot may send 10 MiB, in boosted servers more.]',
      '[gone.txt is no longer kept.]',
    ])
  })

  test('answers a message, and goes out alone when that is no more', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    const id = await platform.say(ann, room, 'a question')
    await sent(host.tell(room, 'an answer', { replyTo: id }))
    await sent(host.tell(room, 'another', { replyTo: '123456789012345678' }))
    expect((await ours(room)).map(({ replyTo }) => replyTo)).toEqual([id, undefined])
  })

  test('may be a reaction, in a thread or outside; an emoji that Discord lacks is an answer', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    const id = await platform.say(ann, room, 'done')
    await until(() => host.heard(room).length === 1)
    const thread = platform.thread(room)
    await sent(host.tell(room, '❤️', { kind: 'reaction', thread: thread.id }))
    await sent(host.tell(room, 'hooray', { kind: 'reaction' }))
    expect((await platform.shown(room))[0]?.reactions).toEqual(['❤️'])
    expect(await ours(room)).toMatchObject([{ text: 'hooray', replyTo: id }])
  })

  test('that somebody has to decide about is shown to the letter, however many signs it has', async () => {
    const { platform, channel } = await alone({})
    const { direct } = platform
    const part = { number: 1, of: 1, key: 'hw1-1' }
    const row = { jid: direct, sender: null, kind: 'approval', messageId: null } as Outgoing
    const texts = ['# *no* ||markup|| <@1>', '*_'.repeat(Math.floor(channel.messageLimit / 2))]
    const ids: string[] = []
    for (const [number, text] of texts.entries())
      ids.push(String(await channel.send({ ...row, text }, { ...part, key: `hw${number}-1` })))
    expect((await platform.shown(direct)).map(({ text }) => text)).toEqual(texts)
    // One that was too long for a message may become short.
    await channel.edit?.({ jid: direct, id: ids[1] ?? '' }, { ...row, text: 'denied' })
    expect((await platform.shown(direct)).map(({ text }) => text)).toEqual([texts[0], 'denied'])
  })

  test('is seen to be written for as long as it takes', async () => {
    const { platform, channel } = await alone({})
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const times = () => platform.api.calls.filter(({ path }) => path.endsWith('/typing')).length
    channel.typing?.(platform.direct, true)
    vi.advanceTimersByTime(10_000)
    await until(() => times() === 2)
    channel.typing?.(platform.direct, false)
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('A sender on Discord', () => {
  test('speaks under a name of its own by a webhook, and can change what it said', async () => {
    const { platform, host, sent, ours, room, direct } = await begin()
    const thread = platform.thread(room)
    const says = (sender: string, text: string, jid = room, more = {}) =>
      sent(host.tell(jid, text, { sender, ...more }))
    await says('Researcher', 'one')
    await says('Writer', 'two', room, { thread: thread.id })
    await says('The Discord expert', 'three')
    await says('Writer', 'to Ann alone', direct)
    const by = async (jid: string) =>
      (await ours(jid)).map(({ id, text }) => `${platform.placeOf(jid, id)[1].author.username}: ${text}`)
    expect(await by(room)).toEqual(['Researcher: one', 'Writer: two', 'hatch: The Discord expert: three'])
    expect(await by(direct)).toEqual(['hatch: Writer: to Ann alone'])
    expect(platform.api.world.webhooks.size).toBe(1)
    const working = host.tell(room, 'working', { sender: 'Writer', thread: thread.id })
    await sent(working)
    await sent(host.tell(room, 'finished', { kind: 'edit', messageId: String(working) }))
    expect((await by(room)).at(-1)).toBe('Writer: finished')
    // Somebody answers what the webhook said: the assistant is meant.
    const last = (await ours(room)).find(({ text }) => text === 'one')
    await platform.say(platform.ann, room, 'thank you', { replyTo: last?.id ?? '' })
    await until(() => host.heard(room).length === 1)
    expect(host.heard(room)).toMatchObject([{ status: 'waiting', quote: { id: last?.id } }])
  })

  test('gets another webhook when somebody has deleted it, and the same one after a restart', async () => {
    const { platform, host, openOn, sent, ours, room } = await begin()
    const { webhooks } = platform.api.world
    await sent(host.tell(room, 'one', { sender: 'Writer' }))
    webhooks.clear()
    await sent(host.tell(room, 'two', { sender: 'Writer' }))
    await host.stop()
    const next = await openOn(host.directory)
    const id = next.tell(room, 'three', { sender: 'Writer' })
    await until(() => next.message(id)?.status === 'sent')
    expect(webhooks.size).toBe(1)
    expect((await ours(room)).map(({ text }) => text)).toEqual(['one', 'two', 'three'])
  })

  test('is named before the text where the bot may have no webhook, and Discord is asked once', async () => {
    const { platform, host, sent, ours, room } = await begin()
    platform.channelOf(room).denied.add('webhooks')
    await sent(host.tell(room, 'one', { sender: 'Writer' }))
    await sent(host.tell(room, 'two', { sender: 'Writer' }))
    expect((await ours(room)).map(({ text }) => text)).toEqual(['Writer: one', 'Writer: two'])
    expect(platform.api.calls.filter(({ path }) => path.endsWith('/webhooks'))).toHaveLength(1)
  })
})

describe('Buttons on Discord', () => {
  const ask = (options: readonly string[]) => ({
    type: 'ask_user',
    payload: { questions: [{ question: 'Tea?', options: options.map(label => ({ label })) }] },
  })

  test('answer a question once, whoever presses again, and only for those who are heard', async () => {
    const platform = await openDiscord()
    onTestFinished(platform.close)
    const { ann, direct, stranger } = platform
    const host = await openHost({
      kind: discord,
      settings: platform.settings,
      groups: [{ folder: 'main', jid: direct, main: true }],
      config: { groups: { main: { senders: [ann.id] } } },
    })
    onTestFinished(host.stop)
    await until(() => host.channel.status?.().isConnected === true)
    await host.command('main', 'q1', ask(['Yes', 'x'.repeat(200)]))
    host.kick()
    await until(async () => (await platform.shown(direct)).length === 1)
    const [card] = await platform.shown(direct)
    expect(card?.buttons?.map(label => label.length)).toEqual([3, 80])
    const [channel, message] = platform.placeOf(direct, card?.id ?? '')
    const ids = message.components.flatMap(row => row.components.map(({ custom_id }) => custom_id))
    const { notices } = platform.api
    platform.pressId(stranger, channel, message, ids[0] ?? '')
    await until(() => notices.length === 1)
    expect(host.sent('q1')).toEqual([])
    for (const id of [ids[0], ids[1], 'hw:q:999999:1', 'forged']) {
      const before = notices.length
      platform.pressId(ann, channel, message, id ?? '')
      await until(() => notices.length > before)
    }
    expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Yes' }] } }])
    expect(notices.map(({ kind }) => kind)).toEqual(['reply', 'deferred', 'reply', 'reply', 'reply'])
    expect(notices.filter(({ kind }) => kind === 'reply').every(({ isEphemeral }) => isEphemeral)).toBe(true)
    await until(async () => (await platform.shown(direct))[0]?.buttons?.length === 0)
  })

  test('stand in rows', async () => {
    const { platform, host, ours, direct } = await begin()
    const many = (count: number) => Array.from({ length: count }, (_, i) => `option ${i + 1}`)
    await host.command('main', 'q1', ask(many(12)))
    host.kick()
    await until(async () => (await ours(direct)).length === 1)
    const [card] = await ours(direct)
    const { components } = platform.placeOf(direct, card?.id ?? '')[1]
    expect(components.map(row => row.components.length)).toEqual([5, 5, 2])
    await platform.press(platform.ann, direct, card?.id ?? '', 'option 12')
    await until(() => host.sent('q1').length === 1)
    expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'option 12' }] } }])
  })

  test('are answered in time when the host is slow, and what is wrong is told afterwards', async () => {
    const over = Promise.withResolvers<void>()
    const { platform } = await alone({
      choose: async () => {
        await over.promise
        return { ok: false, error: { code: 'forbidden', message: 'You may not.' } }
      },
    })
    const channel = platform.channelOf(platform.direct)
    const message = platform.post(platform.ann, channel, { content: 'a card' })
    platform.pressId(platform.ann, channel, message, 'hw:q:1:1')
    const { notices } = platform.api
    await until(() => notices.length === 1)
    over.resolve()
    await until(() => notices.length === 2)
    expect(notices).toEqual([
      { kind: 'deferred', text: undefined, isEphemeral: false },
      { kind: 'follow-up', text: 'You may not.', isEphemeral: true },
    ])
  })

  test.each(['Allow', 'Deny'])('%s what an agent may not do alone, by those who may', async label => {
    const platform = await openDiscord()
    onTestFinished(platform.close)
    const { direct, room, ann, stranger } = platform
    const live = await openLive({ agents: { enabled: 'no' }, groups: { main: { approvers: [ann.id] } } })
    onTestFinished(() => live.close())
    const { host } = live
    await host.addGroup({ folder: 'main', jid: direct, name: 'main', main: true, dialect: 'hatchway' })
    await host.addGroup({ folder: 'room', jid: room, name: 'room', main: false, dialect: 'hatchway' })
    await live.start()
    await host.startAgents()
    const detach = await host.chats?.channels.attach(open(optionsFor(platform.settings)))
    onTestFinished(async () => detach?.())
    host.store.transaction(transaction =>
      transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
    )
    const text = '*secret* ||plan|| @everyone https://example.org/_a_'
    post(
      join(live.layout.ipc, 'main', 'tasks'),
      JSON.stringify({ version: 1, id: 'r-1', type: 'send_message', payload: { jid: room, text } }),
      { name: createNames()() },
    )
    const shown = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
    const cardIn = async () => (await shown(direct)).find(({ buttons }) => buttons?.includes('Allow'))
    await until(async () => (await cardIn()) !== undefined)
    const card = await cardIn()
    // To the letter: nothing that an agent writes is markup in what people decide about.
    expect((await shown(direct)).map(one => one.text).join('')).toContain(text)
    await platform.press(stranger, direct, card?.id ?? '', label)
    await until(() => platform.api.notices.length === 1)
    expect(platform.api.notices[0]).toMatchObject({
      isEphemeral: true,
      text: expect.stringContaining('may not decide'),
    })
    await platform.press(ann, direct, card?.id ?? '', label)
    await until(async () => (await cardIn()) === undefined)
    if (label === 'Allow') await until(async () => (await shown(room)).length === 1)
    const [approval] = host.store.approvals.list({ limit: 1 })
    expect(approval?.status).toBe(label === 'Allow' ? 'allowed' : 'denied')
  })
})

describe('What goes wrong with Discord', () => {
  test('is said without the token, and with what to do', async () => {
    const platform = await openDiscord()
    onTestFinished(platform.close)
    const good = await check(optionsFor(platform.settings))
    expect(good).toContain(
      'hatch; in The others; invitation: https://discord.com/oauth2/authorize?client_id=',
    )
    const token = 'MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.not-known-to-anybody-at-all-here'
    const wrong = await check(optionsFor({ ...platform.settings, token })).catch(String)
    expect(wrong).toContain('Discord does not know this token. Copy it again')
    platform.api.world.application.interactions_endpoint_url = 'https://example.org'
    expect(await check(optionsFor(platform.settings)).catch(String)).toContain('Interactions Endpoint URL')
    await platform.down()
    const unreached = await check(optionsFor({ ...platform.settings, token })).catch(String)
    expect(unreached).toMatch(/Discord cannot be reached: ./)
    expect(wrong + unreached).not.toContain('not-known')
    expect(discordSettings.safeParse({ token: 'no token' }).error?.issues[0]?.message).toContain(
      'Reset Token',
    )
  })

  test('is seen in its status: a token that was changed meanwhile', async () => {
    const platform = await openDiscord()
    const token = 'MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.not-known-to-anybody-at-all-here'
    const channel = open(optionsFor({ ...platform.settings, token }))
    onTestFinished(async () => {
      await channel.disconnect?.()
      await platform.close()
    })
    await channel.connect?.(hostWith())
    await until(() => channel.status?.().lastError?.includes('Discord does not know this token') === true)
    // The library forgets a token that was refused; we do not.
    const calls = platform.api.calls.length
    await until(() => platform.api.calls.length > calls)
    expect(channel.status?.().lastError).not.toContain('Expected token')
  })
})
