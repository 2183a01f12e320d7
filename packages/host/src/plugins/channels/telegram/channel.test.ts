import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { type GroupInChat, openHost } from '../../../../../testing/src/channels/host.ts'
import { ApiFailure } from '../../../../../testing/src/channels/telegram/failure.ts'
import { openTelegram } from '../../../../../testing/src/channels/telegram/platform.ts'
import { openLive } from '../../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../../testing/src/until.ts'
import { layoutOf } from '../../../base/layout.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { Incoming } from '../../../chat/channels/types.ts'
import type { ConfigInput } from '../../../config.ts'
import { createLibrary } from '../library.ts'
import { check, open } from './channel.ts'
import { telegram } from './kind.ts'
import { telegramSettings } from './settings.ts'

channelContract({ kind: telegram, open: openTelegram })

const optionsFor = (settings: Record<string, unknown>) => ({
  settings: telegramSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), telegram),
  readFile: async () => undefined,
  folder: () => '/nowhere',
  assistant: 'Hatch',
  log: pino({ level: 'silent' }),
  now: Date.now,
})

/** The stand-in, and a host with the channel whose chats have groups. */
async function begin(
  more: Parameters<typeof openTelegram>[0] & { config?: ConfigInput; groups?: readonly GroupInChat[] } = {},
) {
  const platform = await openTelegram(more)
  onTestFinished(platform.close)
  const { settings, direct, room } = platform
  const host = await openHost({
    kind: telegram,
    settings,
    groups: [
      { folder: 'main', jid: direct, main: true },
      { folder: 'room', jid: room, requires_trigger: true },
      ...(more.groups ?? []),
    ],
    ...(more.config && { config: more.config }),
  })
  onTestFinished(host.stop)
  await until(() => host.channel.status?.().isConnected === true)
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending')
    return host.message(id)
  }
  const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
  return { platform, host, sent, ours, direct, room, ann: platform.ann }
}

/** The channel alone, with a host that the test plays. */
async function alone(given: Parameters<typeof hostWith>[0], more: Parameters<typeof openTelegram>[0] = {}) {
  const platform = await openTelegram(more)
  const channel = open(optionsFor(platform.settings))
  onTestFinished(async () => {
    await channel.disconnect?.()
    await platform.close()
  })
  await channel.connect?.(hostWith(given))
  return { platform, channel }
}

describe('What people said on Telegram', () => {
  test('is confirmed only after it is stored', async () => {
    const stored = Promise.withResolvers<void>()
    const heard: Incoming[] = []
    const { platform } = await alone({
      receive: async message => {
        heard.push(message)
        await stored.promise
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => heard.length === 1)
    const offsets = () =>
      platform.api.calls.flatMap(({ method, given }) =>
        method === 'getUpdates' && given.offset !== undefined ? [given.offset] : [],
      )
    expect(offsets()).toEqual([])
    const [update] = platform.bot.updates
    stored.resolve()
    await until(() => platform.bot.updates.length === 0)
    expect(offsets()).toEqual([(update?.update_id ?? 0) + 1])
  })

  test('comes again until the host could store it, and is not forgotten meanwhile', async () => {
    let attempts = 0
    const { platform } = await alone({
      receive: async () => {
        if (++attempts < 3) throw new Error('the disk is full')
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => platform.bot.updates.length === 0)
    expect(attempts).toBe(3)
  })

  test('has no mention of the bot in it, and a topic is no answer to whoever began it', async () => {
    const { platform, host, room, ann } = await begin()
    await platform.say(ann, room, 'how are you', { mention: true, thread: 'new' })
    await platform.say(ann, room, 'among ourselves', { thread: '1' })
    platform.post(ann, room, {
      text: '/ask@Hatch_Bot what is new',
      entities: [{ type: 'bot_command', offset: 0, length: 14 }],
    })
    await until(() => host.heard(room).length === 3)
    expect(host.heard(room)).toMatchObject([
      { text: 'how are you', status: 'waiting', thread: '1' },
      { text: 'among ourselves', status: 'context', thread: '1' },
      { text: '/ask what is new', status: 'waiting' },
    ])
    expect(host.heard(room).map(({ quote }) => quote)).toEqual([undefined, undefined, undefined])
  })

  test('quotes what it answers', async () => {
    const { platform, host, room, ann } = await begin()
    const id = await platform.say(ann, room, 'the plants are dry')
    await platform.say(ann, room, 'see above', { mention: true, replyTo: id })
    await until(() => host.heard(room).length === 2)
    expect(host.heard(room)[1]?.quote).toEqual({ id, senderName: 'Ann', text: 'the plants are dry' })
    // Somebody who is not heard is not heard in a quote either.
    const closed = await begin({ config: { groups: { room: { senders: [ann.id] } } } })
    const by = closed.platform.stranger
    const unheard = await closed.platform.say(by, closed.room, 'obey me')
    await closed.platform.say(ann, closed.room, 'look', { mention: true, replyTo: unheard })
    await until(() => closed.host.heard(closed.room).length === 1)
    expect(closed.host.heard(closed.room)[0]?.quote).toEqual({ id: unheard })
  })

  test('is not heard from other bots; a voice is a file with its type; a place is words', async () => {
    const { platform, host, direct, room, ann } = await begin()
    const { world } = platform.api
    platform.post(ann, room, {
      from: { id: 9, is_bot: true, first_name: 'Other' },
      text: 'a bot says',
    })
    const content = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(40)])
    platform.post(ann, direct, { voice: world.addFile(undefined, content, 'audio/ogg') })
    platform.post(ann, direct, { location: { latitude: 52.5, longitude: 13.4 } })
    await until(() => host.heard(direct).length === 2)
    expect(host.heard(direct)).toMatchObject([
      {
        text: '',
        attachments: [{ type: 'audio/ogg', bytes: 44, name: expect.stringMatching(/^voice-\d+\.ogg$/) }],
      },
      { text: '[location: 52.5, 13.4]' },
    ])
    expect(host.heard(room)).toEqual([])
  })

  test('may come with a file that is too large: the words arrive, with the reason', async () => {
    const { platform, host, direct, ann } = await begin()
    const file = { name: 'film.bin', content: Buffer.alloc(20_000_001) }
    await platform.say(ann, direct, 'look', { file })
    await until(() => host.heard(direct).length === 1)
    expect(host.heard(direct)).toMatchObject([
      { text: 'look\n[film.bin was not taken: Bad Request: file is too big]' },
    ])
  })

  test('may come with a file that Telegram never gives: nobody waits for it for long', async () => {
    const { platform, host, direct, room, ann } = await begin()
    platform.api.faults.noFiles = true
    await platform.say(ann, direct, 'look', { file: { name: 'film.bin', content: Buffer.from('a') } })
    await platform.say(ann, room, 'anybody?', { mention: true })
    await until(() => host.heard(room).length === 1 && host.heard(direct).length === 1)
    expect(host.heard(direct)[0]?.text).toContain('look\n[film.bin was not taken: ')
    await platform.say(ann, direct, 'and now?')
    await until(() => host.heard(direct).length === 2)
  })

  test('by strangers has files that are never fetched', async () => {
    const { platform, host, room } = await begin({ config: { groups: { room: { senders: ['501'] } } } })
    await platform.say(platform.stranger, room, 'open this', {
      file: { name: 'virus.exe', content: Buffer.from('MZ') },
    })
    await until(() => host.chats.inbound.counts().refused > 0)
    expect(platform.api.calls.filter(({ method }) => method === 'getFile')).toEqual([])
  })

  test('reaches a bot with privacy mode only where it is meant', async () => {
    const { platform, host, room, ann } = await begin({ readsAll: false })
    expect(await host.check()).toContain('privacy mode')
    await platform.say(ann, room, 'among ourselves')
    await platform.say(ann, room, 'to you', { mention: true })
    await until(() => host.heard(room).length === 1)
    expect(host.heard(room)).toMatchObject([{ text: 'to you', status: 'waiting' }])
  })
})

describe('A chat on Telegram', () => {
  test('that becomes a supergroup keeps its group, and what was on its way to it arrives', async () => {
    const jid = 'telegram:-4001'
    const { platform, host, sent, ours, ann } = await begin({
      groups: [{ folder: 'family', jid, requires_trigger: true }],
    })
    platform.api.world.addRoom({ id: -4001, type: 'group', title: 'Family' }, [platform.bot])
    await platform.say(ann, jid, 'hello')
    await until(() => host.heard(jid).length === 1)
    const next = platform.migrate(jid, -1009876543210)
    await until(() => host.store.group('family')?.jid === next)
    await platform.say(ann, next, 'we have moved', { mention: true })
    await until(() => host.heard(next).length === 1)
    expect(await sent(host.tell(jid, 'to the old address'))).toMatchObject({ status: 'sent' })
    expect((await ours(next)).map(({ text }) => text)).toEqual(['to the old address'])
  })

  test('has another name once it is renamed', async () => {
    const { platform, host, room, ann } = await begin()
    await platform.say(ann, room, 'hello')
    await until(() => host.store.chats.known(room)?.name === 'The others')
    await platform.rename(room, 'All of us')
    await until(() => host.store.chats.known(room)?.name === 'All of us')
  })

  test('that the bot was removed from fails what is sent there at once', async () => {
    const { platform, host, sent, room } = await begin()
    platform.api.world.rooms.get(-1001234567890)?.bots.clear()
    expect(await sent(host.tell(room, 'hello?'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining('Let the bot into the chat again'),
    })
    expect(await sent(host.tell('telegram:12345', 'hello?'))).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('chat not found'),
    })
  })

  test('whose topic was deleted gets the answer outside of it', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    await platform.say(ann, room, 'in a topic', { mention: true, thread: 'new' })
    await until(() => host.heard(room).length === 1)
    platform.api.world.rooms.get(-1001234567890)?.topics.clear()
    expect(await sent(host.tell(room, 'where are you', { thread: '1' }))).toMatchObject({ status: 'sent' })
    expect(await ours(room)).toMatchObject([{ text: 'where are you', thread: undefined }])
  })
})

describe('What agents say on Telegram', () => {
  const sentTexts = ({ platform }: Awaited<ReturnType<typeof begin>>) =>
    platform.api.calls.flatMap(({ method, given }) => (method === 'sendMessage' ? [given] : []))

  test('is formatted, and plain where Telegram refuses the format or finds it too long', async () => {
    const rig = await begin()
    const { platform, host, sent, direct } = rig
    await sent(host.tell(direct, '**bold** <b> & [a](https://example.org)'))
    platform.api.refusals.push(new ApiFailure(400, "Bad Request: can't parse entities: Unexpected end"))
    await sent(host.tell(direct, '**odd**'))
    // Each line of a list is indented, and so is longer than it was.
    const long = `1. a\n${'b\n'.repeat(2000)}`.trim()
    await sent(host.tell(direct, long))
    expect(sentTexts(rig)).toMatchObject([
      {
        text: '<b>bold</b> &lt;b&gt; &amp; <a href="https://example.org">a</a>',
        parse_mode: 'HTML',
        link_preview_options: { is_disabled: true },
      },
      { text: '<b>odd</b>', parse_mode: 'HTML' },
      { text: '**odd**' },
      { parse_mode: 'HTML' },
      { text: long },
    ])
    expect((await rig.ours(direct)).map(({ text }) => text)).toEqual(['bold <b> & a', '**odd**', long])
  })

  test('waits as long as Telegram asks for, which is no failed attempt', async () => {
    const { platform, host, sent, direct } = await begin()
    platform.api.refusals.push(new ApiFailure(429, 'Too Many Requests: retry after 2', { retry_after: 2 }))
    const id = host.tell(direct, 'patience')
    await until(() => host.message(id)?.error !== null)
    expect(host.channel.status?.().limitedUntil).toBeGreaterThan(0)
    expect(await sent(id)).toMatchObject({ status: 'sent', attempts: 2 })
  })

  test('goes out with pictures and files; a broken picture is a file', async () => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    const broken = Buffer.concat([Buffer.from('RIFF1234WEBP'), Buffer.alloc(8)])
    for (const [name, content] of [
      ['dot.png', png],
      ['broken.webp', broken],
    ] as const)
      await platform.say(ann, direct, name, { file: { name, content } })
    await until(() => host.heard(direct).length === 2)
    const attachments = host.heard(direct).flatMap(row => row.attachments ?? [])
    const missing = { id: 'no-such-file', name: 'gone.txt', type: 'text/plain', bytes: 1 }
    platform.api.refusals.push(new ApiFailure(502, 'Bad Gateway'))
    await sent(host.tell(direct, 'both', { attachments: [...attachments, missing] }))
    expect((await ours(direct)).map(({ text, file }) => file?.name ?? text)).toEqual([
      'both',
      'dot.png',
      'broken.webp',
      '[gone.txt is no longer kept.]',
    ])
    expect(
      platform.api.calls.map(({ method }) => method).filter(method => /Photo|Document/.test(method)),
    ).toEqual(['sendPhoto', 'sendPhoto', 'sendDocument'])
  })

  test('goes on after the part that had arrived when a file fails', async () => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    await platform.say(ann, direct, 'here', { file: { name: 'a.txt', content: Buffer.from('a') } })
    await until(() => host.heard(direct).length === 1)
    const attachments = host.heard(direct)[0]?.attachments
    // The text arrives, and its file does not.
    platform.api.refusals.push(undefined, new ApiFailure(502, 'Bad Gateway'))
    await sent(host.tell(direct, 'once', { attachments }))
    expect(platform.api.refusals).toEqual([])
    expect((await ours(direct)).map(({ text, file }) => file?.name ?? text)).toEqual(['once', 'a.txt'])
  })

  test('may be a reaction that Telegram does not have: then it is an answer', async () => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    const id = await platform.say(ann, direct, 'done')
    await until(() => host.heard(direct).length === 1)
    await sent(host.tell(direct, '❤️', { kind: 'reaction' }))
    expect((await platform.shown(direct))[0]?.reactions).toEqual(['❤'])
    await sent(host.tell(direct, '🧀', { kind: 'reaction' }))
    expect(await ours(direct)).toMatchObject([{ text: '🧀', replyTo: id }])
  })

  test('is seen to be written for as long as it takes', async () => {
    const { platform, host, direct } = await begin()
    const actions = () => platform.api.calls.filter(({ method }) => method === 'sendChatAction').length
    host.chats.typing(direct, true)
    await until(() => actions() === 2)
    host.chats.typing(direct, false)
  })
})

describe('A pool of bots', () => {
  test('shows each sender under a name of its own, always the same', async () => {
    const { platform, host, sent, room, direct, ours } = await begin({ pool: 2 })
    const says = (sender: string, text: string, jid = room) => sent(host.tell(jid, text, { sender }))
    await says('Researcher', 'one')
    await says('Writer', 'two')
    await says('Researcher', 'three')
    await says('Critic', 'four')
    await says('Writer', 'to Ann alone', direct)
    const by = async (jid: string) =>
      (await ours(jid)).map(({ id, text }) => `${platform.messageIn(jid, id).from.id} ${text}`)
    expect(await by(room)).toEqual(['8001 one', '8002 two', '8001 three', '7001 Critic: four'])
    expect(await by(direct)).toEqual(['7001 Writer: to Ann alone'])
    expect(platform.pool.map(({ renamed }) => renamed)).toEqual([['Researcher'], ['Writer']])
    // What one of them has said can be changed, too.
    const first = host.tell(room, 'working', { sender: 'Writer' })
    await sent(first)
    await sent(host.tell(room, 'finished', { kind: 'edit', messageId: String(first) }))
    expect((await by(room)).at(-1)).toBe('8002 finished')
    expect(await host.check()).toContain('@hatch_pool0_bot, @hatch_pool1_bot')
  })

  test('takes no name that is none, and none of a group that has read secrets: everybody sees it', async () => {
    const { platform, host, sent, room, ours } = await begin({ pool: 2 })
    await sent(host.tell(room, 'one', { sender: 'the key is 0451-8812-9001-7734-1200-5561' }))
    host.store.taints.add('room', 'session', { corrupted: false, secret: true }, 'a test', 1)
    await sent(host.tell(room, 'two', { sender: 'Writer' }))
    expect(platform.pool.map(({ renamed }) => renamed)).toEqual([[], []])
    expect((await ours(room)).map(({ text }) => text)).toEqual([
      'the key is 0451-8812-9001-7734-1200-5561: one',
      'Writer: two',
    ])
  })

  test('that is not in the group leaves it to the first bot', async () => {
    const { platform, host, sent, room, ours } = await begin({ pool: 1 })
    platform.api.world.rooms.get(-1001234567890)?.bots.delete(8001)
    await sent(host.tell(room, 'hello', { sender: 'Writer' }))
    expect((await ours(room)).map(({ text }) => text)).toEqual(['Writer: hello'])
  })
})

describe('Buttons on Telegram', () => {
  test('answer a question once, whoever presses again, and only for those who are heard', async () => {
    const { platform, host, ours, direct, ann } = await begin({
      config: { groups: { main: { senders: ['501'] } } },
    })
    await host.command('main', 'q1', {
      type: 'ask_user',
      payload: { questions: [{ question: 'Tea?', options: [{ label: 'Yes' }, { label: 'x'.repeat(200) }] }] },
    })
    host.kick()
    await until(async () => (await ours(direct)).length === 1)
    const [card] = await ours(direct)
    const message = platform.messageIn(direct, card?.id ?? '')
    const data = message.reply_markup?.inline_keyboard.flat().map(button => button.callback_data) ?? []
    expect(card?.buttons?.[1]).toHaveLength(64)
    platform.pressData(platform.stranger, message, data[0] ?? '')
    await until(() => platform.api.notices.length === 1)
    expect(host.sent('q1')).toEqual([])
    platform.pressData(ann, message, data[0] ?? '')
    platform.pressData(ann, message, data[1] ?? '')
    platform.pressData(ann, message, 'q:999999:1')
    platform.pressData(ann, message, 'forged')
    await until(() => platform.api.notices.length === 5)
    expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Yes' }] } }])
    const refused = platform.api.notices.map(({ text }) => text !== undefined)
    expect(refused).toEqual([true, false, true, true, true])
    await until(async () => (await ours(direct))[0]?.buttons?.length === 0)
  })

  test.each(['Allow', 'Deny'])('%s what an agent may not do alone, by those who may', async label => {
    const platform = await openTelegram()
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
    await until(() => platform.api.notices.length === 1)
    expect(platform.api.notices[0]?.text).toContain('may not decide')
    await platform.press(ann, direct, card?.id ?? '', label)
    await until(async () => (await shown(direct))[0]?.buttons?.length === 0)
    if (label === 'Allow') await until(async () => (await shown(room)).length === 1)
    const [approval] = host.store.approvals.list({ limit: 1 })
    expect(approval?.status).toBe(label === 'Allow' ? 'allowed' : 'denied')
  })
})

test('All chats of a bot share what Telegram takes from it, and who waits is seen', async () => {
  const platform = await openTelegram()
  onTestFinished(platform.close)
  const { direct, room } = platform
  const host = await openHost({
    kind: telegram,
    settings: { ...platform.settings, perSecond: '8' },
    groups: [
      { folder: 'main', jid: direct, main: true },
      { folder: 'room', jid: room },
    ],
  })
  onTestFinished(host.stop)
  for (let i = 0; i < 8; i++) host.tell(direct, `first ${i}`)
  const last = Array.from({ length: 4 }, (_, i) => host.tell(room, `then ${i}`))
  const pace = () => host.channel.status?.().pace
  await until(() => (pace()?.waiting ?? 0) > 0)
  expect(pace()?.limit).toEqual({ messages: 8, perMs: 1000 })
  await until(() => last.every(id => host.message(id)?.status === 'sent'))
  await until(() => pace()?.waiting === 0)
})

describe('What goes wrong with Telegram', () => {
  test('is said without the token, and with what to do', async () => {
    const platform = await openTelegram()
    onTestFinished(platform.close)
    const token = '123456:AAE-not-known-to-anybody'
    const wrong = await check(optionsFor({ ...platform.settings, token })).catch(String)
    expect(wrong).toContain('Copy it again from @BotFather')
    const pooled = await check(optionsFor({ ...platform.settings, pool: token })).catch(String)
    expect(pooled).toContain('bot 123456 of the pool')
    await platform.down()
    const unreached = await check(optionsFor({ ...platform.settings, token })).catch(String)
    expect(unreached).toContain('Telegram cannot be reached: ')
    expect(wrong + pooled + unreached).not.toContain('AAE-not-known')
    expect(telegramSettings.safeParse({ token: 'no token' }).error?.issues[0]?.message).toContain(
      '@BotFather',
    )
  })

  test('is seen in its status: another program that takes the messages', async () => {
    const { platform, channel } = await alone({})
    await until(() => channel.status?.().isConnected === true)
    await until(() => platform.bot.waiting !== undefined)
    platform.bot.waiting?.terminate()
    await until(() => channel.status?.().lastError !== undefined)
    expect(channel.status?.().lastError).toContain('Another program takes what this bot hears')
    await until(() => channel.status?.().isConnected === true)
  })
})
