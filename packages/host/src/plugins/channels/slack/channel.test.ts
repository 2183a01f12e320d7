import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openHost } from '../../../../../testing/src/channels/host.ts'
import { SlackFailure } from '../../../../../testing/src/channels/slack/failure.ts'
import { readMrkdwn } from '../../../../../testing/src/channels/slack/formatting.ts'
import { openSlack } from '../../../../../testing/src/channels/slack/platform.ts'
import { openLive } from '../../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../../testing/src/until.ts'
import { layoutOf } from '../../../base/layout.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { Incoming } from '../../../chat/channels/types.ts'
import type { ConfigInput } from '../../../config.ts'
import { createLibrary } from '../library.ts'
import { check, open } from './channel.ts'
import { slack } from './kind.ts'
import { peopleIn } from './said.ts'
import { slackSettings } from './settings.ts'

channelContract({ kind: slack, open: openSlack })

const optionsFor = (settings: Record<string, unknown>, log = pino({ level: 'silent' })) => ({
  settings: slackSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), slack),
  readFile: async () => undefined,
  folder: () => '/nowhere',
  assistant: 'Hatch',
  log,
  now: Date.now,
})

type Opened = NonNullable<Parameters<typeof openSlack>[0]>

/** The stand-in, and a host with the channel whose chats have groups. */
async function begin(more: Opened & { config?: ConfigInput } = {}) {
  const platform = await openSlack(more)
  onTestFinished(platform.close)
  const { settings, direct, room } = platform
  const given = {
    kind: slack,
    settings,
    groups: [
      { folder: 'main', jid: direct, main: true },
      { folder: 'room', jid: room, requires_trigger: true },
    ],
    ...(more.config && { config: more.config }),
  }
  const openOne = async (directory?: string) => {
    const host = await openHost({ ...given, ...(directory !== undefined && { directory }) })
    onTestFinished(host.stop)
    await until(() => host.channel.status?.().isConnected === true)
    return host
  }
  const host = await openOne()
  /** Slack knows that nobody is there, too. */
  const leave = async () => {
    await host.stop()
    await until(() => platform.api.connections.length === 0)
  }
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending')
    return host.message(id)
  }
  const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
  const asked = (method: string) =>
    platform.api.calls.flatMap(call => (call.method === method ? [call.given] : []))
  return { platform, host, openOne, leave, sent, ours, asked, direct, room, ann: platform.ann }
}

/** The channel alone, with a host that the test plays. */
async function alone(given: Parameters<typeof hostWith>[0], more: Opened = {}) {
  const platform = await openSlack(more)
  const channel = open(optionsFor(platform.settings))
  onTestFinished(async () => {
    await channel.disconnect?.()
    await platform.close()
  })
  await channel.connect?.(hostWith(given))
  await until(() => channel.status?.().isConnected === true)
  return { platform, channel, direct: platform.direct, ann: platform.ann }
}

const texts = (rows: readonly { text: string }[]) => rows.map(({ text }) => text)
const limit = new SlackFailure('ratelimited', 429, 1)
const broken = new SlackFailure('unavailable', 503)

describe('What people said on Slack', () => {
  test('in an absence comes before what Slack tells first on the next connection', async () => {
    const platform = await openSlack()
    onTestFinished(platform.close)
    const { direct, ann } = platform
    const memory = new Map<string, string>()
    const heard: Incoming[] = []
    const broken = Promise.withResolvers<never>()
    let isBroken = false
    let attempts = 0
    const begun = async () => {
      const channel = open(optionsFor(platform.settings))
      onTestFinished(async () => channel.disconnect?.())
      await channel.connect?.(
        hostWith({
          recall: key => memory.get(key),
          remember: (key, value) => void (value === undefined ? memory.delete(key) : memory.set(key, value)),
          async receive(message) {
            attempts++
            if (isBroken) await broken.promise
            heard.push(message)
            return { ok: true, id: heard.length, status: 'waiting' }
          },
        }),
      )
      await until(() => channel.status?.().isConnected === true)
      return channel
    }
    const first = await begun()
    await platform.say(ann, direct, 'first')
    await until(() => platform.api.acked.length > 0)
    await first.disconnect?.()
    await until(() => platform.api.connections.length === 0)
    await platform.say(ann, direct, 'second')
    isBroken = true
    await begun()
    await until(() => attempts > 1)
    // It is told, waits behind the second, and is told again as soon as there is another connection.
    await platform.say(ann, direct, 'third')
    isBroken = false
    broken.reject(new Error('the disk is full'))
    await until(() => texts(heard).includes('third'))
    expect(texts(heard)).toEqual(['first', 'second', 'third'])
  })

  test('with a thousand mentions has Slack asked for a few names only', () => {
    const names = Array.from({ length: 1000 }, (_, i) => `<@U0NOBODY${i}>`)
    expect(peopleIn(names.join(' '))).toHaveLength(50)
    expect(peopleIn('<@U0ANN> and <@U0ANN>')).toEqual(['U0ANN'])
  })

  test('is acknowledged only after it is stored, and taken once although Slack tells it again', async () => {
    const stored = Promise.withResolvers<void>()
    const heard: Incoming[] = []
    const { platform, direct, ann } = await alone(
      {
        receive: async message => {
          heard.push(message)
          await stored.promise
          return { ok: true, id: 1, status: 'waiting' }
        },
      },
      { ackMs: 50 },
    )
    await platform.say(ann, direct, 'keep this')
    await until(() => platform.api.unacked().some(({ attempt }) => attempt > 0))
    expect(platform.api.acked).toEqual([])
    stored.resolve()
    await until(() => platform.api.acked.length > 0)
    await until(() => platform.api.unacked().length === 0)
    expect(texts(heard)).toEqual(['keep this'])
  })

  test('comes again, in its order, until the host could store it', async () => {
    let attempts = 0
    const heard: string[] = []
    const { platform, direct, ann } = await alone({
      receive: async ({ text }) => {
        if (++attempts < 3) throw new Error('the disk is full')
        heard.push(text)
        return { ok: true, id: attempts, status: 'waiting' }
      },
    })
    await platform.say(ann, direct, 'one')
    await platform.say(ann, direct, 'two')
    await until(() => heard.length === 2)
    expect(heard).toEqual(['one', 'two'])
    await until(() => platform.api.unacked().length === 0)
  })

  test('is told twice if it mentions the app, and taken once, in words that people read', async () => {
    const { platform, host, room, ann } = await begin()
    const { user } = platform.api.world.app
    const text = `<@${user}> ask <@U0MAL> in <#C0ROOM|others> about <https://example.org/?a=1&amp;b=2|this> &amp; &lt;that&gt; <!here>`
    platform.post(room, { user: ann.id, text })
    await until(() => platform.api.acked.length === 2)
    expect(platform.api.acked.map(({ payload }) => (payload.event as { type: string }).type)).toEqual([
      'message',
      'app_mention',
    ])
    expect(host.heard(room)).toMatchObject([
      {
        text: 'ask @Mallory in #others about this (https://example.org/?a=1&b=2) & <that> @here',
        status: 'waiting',
        sender: 'U0ANN',
      },
    ])
  })

  test('is heard by mention alone where the app sees nothing else', async () => {
    const { platform, host, room, ann } = await begin()
    const ts = platform.api.world.nextTs()
    platform.api.world.tell({
      type: 'app_mention',
      user: ann.id,
      text: '<@U0HATCH> hello',
      ts,
      channel: 'C0ROOM',
      event_ts: ts,
    })
    await until(() => host.heard(room).length === 1)
    expect(host.heard(room)).toMatchObject([{ text: 'hello', status: 'waiting' }])
  })

  test('is not heard from apps, from Slack itself, or from us under another name', async () => {
    const { platform, host, sent, room, ann } = await begin()
    platform.post(room, { subtype: 'bot_message', bot_id: 'B0OTHER', text: 'a bot says' })
    platform.post(room, { user: ann.id, bot_id: 'B0OTHER', text: 'an app says for Ann' })
    platform.post(room, { user: 'USLACKBOT', text: 'a reminder' })
    platform.post(room, { subtype: 'channel_join', user: ann.id, text: 'Ann has joined' })
    await sent(host.tell(room, 'as somebody', { sender: 'Researcher' }))
    await platform.say(ann, room, 'a person says')
    await until(() => host.heard(room).length > 0)
    expect(texts(host.heard(room))).toEqual(['a person says'])
  })

  test('in a thread quotes what began it; an answer to us calls the assistant, under whatever name we spoke', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    const first = await platform.say(ann, room, 'the plants are dry')
    await platform.say(ann, room, 'see above', { thread: first })
    await sent(host.tell(room, 'watered', { sender: 'Gardener' }))
    const [watered] = await ours(room)
    await platform.say(ann, room, 'thanks', { replyTo: watered?.id ?? '' })
    await until(() => host.heard(room).length === 3)
    expect(host.heard(room)).toMatchObject([
      { text: 'the plants are dry', status: 'context' },
      {
        text: 'see above',
        status: 'context',
        thread: first,
        quote: { id: first, senderName: 'Ann', text: 'the plants are dry' },
      },
      { text: 'thanks', status: 'waiting', thread: watered?.id, quote: { text: 'watered' } },
    ])
  })

  test('is changed when people change it, and not when Slack adds a preview; a thread without its first words took them back', async () => {
    const { platform, host, direct, ann } = await begin()
    const one = await platform.say(ann, direct, 'look')
    const two = await platform.say(ann, direct, 'and this')
    await until(() => host.heard(direct).length === 2)
    const changed = (id: string, now: object) => {
      const before = platform.messageIn(direct, id)
      platform.api.world.tell({
        type: 'message',
        subtype: 'message_changed',
        channel: 'D0ANN',
        ts: platform.api.world.nextTs(),
        message: { ...before, ...now },
        previous_message: before,
      })
    }
    changed(one, { attachments: [{ title: 'a preview' }] })
    changed(two, { subtype: 'tombstone', text: 'This message was deleted.' })
    await platform.edit(platform.stranger, direct, one, 'look &amp; listen')
    await until(() => host.heard(direct)[0]?.text.includes('listen') === true)
    expect(texts(host.heard(direct))).toEqual(['look &amp; listen', '[taken back]'])
  })
})

describe('What was said on Slack while nobody was there', () => {
  test('arrives in its order: more than a page, in threads of any age, before what is said now', async () => {
    const { platform, host, openOne, leave, sent, ours, room, direct, ann } = await begin()
    const thread = await platform.say(ann, room, 'a plan', { mention: true })
    await platform.say(ann, room, 'part of the plan', { thread })
    await sent(host.tell(room, 'from the assistant'))
    await platform.say(ann, room, 'last before')
    await platform.say(ann, direct, 'hello')
    await until(() => host.heard(room).length === 3 && host.heard(direct).length === 1)
    await leave()
    const [asked] = await ours(room)
    for (let i = 0; i < 250; i++) await platform.say(ann, direct, `missed ${i}`)
    await platform.say(ann, room, 'in the old thread', { thread })
    await platform.say(ann, room, 'under what we said', { replyTo: asked?.id ?? '' })
    const begun = await platform.say(ann, room, 'a new matter')
    await platform.say(ann, room, 'in the new thread', { thread: begun })
    // The first two pages are refused for now.
    platform.api.refuse('conversations.history', limit, limit)
    const next = await openOne(host.directory)
    expect(next.heard(direct)).toHaveLength(1)
    await platform.say(ann, direct, 'now')
    await until(() => next.heard(direct).length === 252 && next.heard(room).length === 7)
    expect(texts(next.heard(direct)).slice(1)).toEqual([
      ...Array.from({ length: 250 }, (_, i) => `missed ${i}`),
      'now',
    ])
    expect(texts(next.heard(room)).slice(3)).toEqual([
      'in the old thread',
      'under what we said',
      'a new matter',
      'in the new thread',
    ])
  })

  test('is left out where the app may not read it; what is said now still arrives', async () => {
    const { platform, host, openOne, leave, direct, ann } = await begin()
    await platform.say(ann, direct, 'first')
    await until(() => host.heard(direct).length === 1)
    await leave()
    await platform.say(ann, direct, 'missed')
    platform.api.world.app.scopes.delete('im:history')
    const next = await openOne(host.directory)
    await platform.say(ann, direct, 'now')
    await until(() => next.heard(direct).length === 2)
    expect(texts(next.heard(direct))).toEqual(['first', 'now'])
  })

  test('is not read in chats where nobody is heard', async () => {
    const { platform, host, openOne, leave, asked, ann } = await begin()
    platform.api.world.addChat('C0ELSE', { name: 'elsewhere' })
    await platform.say(ann, 'slack:C0ELSE', 'not for us')
    await until(() => host.chats.inbound.counts().refused === 1)
    await leave()
    await openOne(host.directory)
    expect(asked('conversations.history')).toEqual([])
  })
})

describe('Files on Slack', () => {
  test('by strangers are never fetched', async () => {
    const { platform, host, room } = await begin({ config: { groups: { room: { senders: ['U0ANN'] } } } })
    await platform.say(platform.stranger, room, 'open this', {
      file: { name: 'virus.exe', content: Buffer.from('MZ') },
    })
    await until(() => host.chats.inbound.counts().refused > 0)
    expect(platform.api.fetched).toEqual([])
  })

  test('from elsewhere are named and not fetched: nobody but Slack sees the token', async () => {
    const seen: (string | undefined)[] = []
    const elsewhere = createServer((request, response) => {
      seen.push(request.headers.authorization)
      response.end('gotcha')
    })
    await new Promise<void>(done => elsewhere.listen(0, '127.0.0.1', done))
    onTestFinished(() => void elsewhere.close())
    const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/files-pri/x.slack.com/a`
    const { platform, host, direct, ann } = await begin()
    const { world } = platform.api
    const file = (name: string, more: object) => ({
      ...world.addFile(name, Buffer.from('a'), platform.api.url('')),
      ...more,
    })
    platform.post(direct, {
      user: ann.id,
      text: 'see',
      files: [
        file('drive.doc', { is_external: true, mode: 'external', url_private: url }),
        file('forged.txt', { url_private: url, url_private_download: url }),
        file('old.txt', { mode: 'tombstone' }),
      ],
    })
    await until(() => host.heard(direct).length === 1)
    expect(texts(host.heard(direct))[0]?.split('\n')).toEqual([
      'see',
      `[drive.doc: ${url}]`,
      '[forged.txt was not taken: Slack refused it (not_a_file_of_slack).]',
      '[old.txt was deleted]',
    ])
    expect(seen).toEqual([])
  })

  test('that Slack does not give do not hold up the words; one that it gives later comes along', async () => {
    const { platform, host, direct, ann } = await begin()
    const content = Buffer.from('content')
    platform.api.refuse('download', broken)
    await platform.say(ann, direct, 'at the second attempt', { file: { name: 'a.txt', content } })
    await until(() => host.heard(direct).length === 1)
    platform.api.refuse('download', broken, broken, broken)
    await platform.say(ann, direct, 'never', { file: { name: 'b.txt', content } })
    await until(() => host.heard(direct).length === 2)
    platform.api.world.files.clear()
    const gone = platform.api.world.addFile('c.txt', content, platform.api.url(''))
    platform.api.world.files.clear()
    platform.post(direct, { user: ann.id, text: 'gone', files: [gone] })
    const shared = platform.api.world.addFile('d.txt', content, platform.api.url(''))
    const { url_private_download: _, ...unseen } = { ...shared, file_access: 'check_file_info' }
    platform.post(direct, { user: ann.id, text: 'to be asked for', files: [unseen] })
    await until(() => host.heard(direct).length === 4)
    expect(host.heard(direct)).toMatchObject([
      { text: 'at the second attempt', attachments: [{ name: 'a.txt', bytes: 7 }] },
      { text: 'never\n[b.txt was not taken: Slack has a failure of its own (HTTP 503).]' },
      { text: 'gone\n[c.txt was not taken: Slack refused it (http_302).]' },
      { text: 'to be asked for', attachments: [{ name: 'd.txt' }] },
    ])
  })

  test('go on after the part that had arrived; those that are no longer kept are named', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    const thread = await platform.say(ann, room, 'here', {
      file: { name: 'a.txt', content: Buffer.from('a') },
    })
    await until(() => host.heard(room).length === 1)
    const attachments = host.heard(room)[0]?.attachments ?? []
    const missing = { id: 'no-such-file', name: 'gone.txt', type: 'text/plain', bytes: 1 }
    // The text arrives, and its file does not.
    platform.api.refusals.push(undefined, broken)
    await sent(host.tell(room, 'once', { attachments: [...attachments, missing], thread }))
    expect(platform.api.refusals).toEqual([])
    expect((await ours(room)).map(one => [one.file?.name ?? one.text, one.thread])).toEqual([
      ['once', thread],
      ['a.txt', thread],
      ['[gone.txt is no longer kept.]', thread],
    ])
  })
})

describe('What agents say on Slack', () => {
  test('is formatted, has no previews, and is exact where the format would be too long', async () => {
    const { host, sent, ours, asked, direct } = await begin()
    await sent(
      host.tell(
        direct,
        '# Title\n**bold** *soft* ~~gone~~ `a<b` <b> & [a|b](https://example.org/?a=1&b=<2>)\n\n> quote\n\n```js\nif (a < b) "```"\n```',
      ),
    )
    const ampersands = '&'.repeat(2500)
    await sent(host.tell(direct, ampersands))
    const [first, second] = asked('chat.postMessage')
    expect(first).toMatchObject({
      text: '*Title*\n\n*bold* _soft_ ~gone~ `a&lt;b` &lt;b&gt; &amp; <https://example.org/?a=1&amp;b=%3C2%3E|a|b>\n\n> quote\n\n```\nif (a &lt; b) "``\u200b`"\n```',
      unfurl_links: 'false',
      unfurl_media: 'false',
      parse: 'none',
    })
    expect(second?.text?.length).toBeLessThan(4000)
    expect((await ours(direct))[1]?.text).toBe(ampersands)
  })

  test('calls nobody, whatever it says, in messages, changes, cards and names', async () => {
    // The stand-in sees a call where there is one.
    expect(readMrkdwn('<!channel> <@U0ANN> `<!here>`').calls).toEqual(['!channel', '@U0ANN'])
    expect(readMrkdwn('@here', true).calls).toEqual(['@here'])
    const { platform, host, sent, ours, direct } = await begin()
    const hostile =
      '<!channel> <!here> <!everyone> <@U0ANN> <!subteam^S1> @channel @here @everyone &lt;!channel&gt; [<!here>](https://example.org/|<!channel>) **<!here>** `<!here>`'
    const id = host.tell(direct, hostile)
    await sent(id)
    await sent(host.tell(direct, hostile, { kind: 'edit', messageId: String(id) }))
    await sent(host.tell(direct, 'hello', { sender: '<!channel> *@here*' }))
    platform.api.world.app.scopes.delete('chat:write.customize')
    await sent(host.tell(direct, hostile, { sender: '<!channel>' }))
    await host.command('main', 'q1', {
      type: 'ask_user',
      payload: { questions: [{ question: hostile, options: [{ label: '<!here>' }, { label: '@here' }] }] },
    })
    host.kick()
    await until(async () => (await ours(direct)).some(one => one.buttons?.length === 2))
    expect((await ours(direct)).length).toBe(4)
    expect(platform.api.called).toEqual([])
  })

  test('shows its sender by name and picture, or before the text where the app may not', async () => {
    const { platform, host, sent, ours, direct } = await begin()
    await sent(host.tell(direct, 'one', { sender: 'Researcher' }))
    await sent(host.tell(direct, 'two', { sender: 'Researcher' }))
    const [one, two] = await ours(direct)
    const shown = (id = '') => platform.messageIn(direct, id)
    expect(shown(one?.id)).toMatchObject({ username: 'Researcher', icon_emoji: shown(two?.id).icon_emoji })
    const first = host.tell(direct, 'working', { sender: 'Writer' })
    await sent(first)
    await sent(host.tell(direct, 'finished', { kind: 'edit', messageId: String(first) }))
    platform.api.world.app.scopes.delete('chat:write.customize')
    await sent(host.tell(direct, 'three', { sender: 'Re*searcher' }))
    expect(texts(await ours(direct))).toEqual(['one', 'two', 'finished', 'Re searcher: three'])
  })

  test('waits as long as Slack asks for, which is no failed attempt', async () => {
    const { platform, host, sent, direct } = await begin()
    platform.api.refusals.push(limit)
    const id = host.tell(direct, 'patience')
    await until(() => host.message(id)?.error !== null)
    expect(host.channel.status?.().limitedUntil).toBeGreaterThan(0)
    expect(await sent(id)).toMatchObject({ status: 'sent', attempts: 2 })
  })

  test.each([
    ['not_in_channel', 'Invite the app into the channel'],
    ['is_archived', 'is_archived'],
  ])('fails at once where that is final: %s', async (code, words) => {
    const { platform, host, sent, room } = await begin()
    platform.api.refusals.push(new SlackFailure(code))
    expect(await sent(host.tell(room, 'hello?'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining(words),
    })
  })

  test('may be a reaction; one that Slack does not have is an answer in the thread', async () => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    const id = await platform.say(ann, direct, 'done')
    await until(() => host.heard(direct).length === 1)
    for (const emoji of ['❤', '❤️', ':eyes:']) await sent(host.tell(direct, emoji, { kind: 'reaction' }))
    expect((await platform.shown(direct))[0]?.reactions).toEqual(['❤️', '👀'])
    await sent(host.tell(direct, '🧀', { kind: 'reaction' }))
    expect(await ours(direct)).toMatchObject([{ text: '🧀', thread: id }])
    await platform.react(ann, direct, (await ours(direct))[0]?.id ?? '', 'party-parrot')
    await platform.react(ann, direct, (await ours(direct))[0]?.id ?? '', '+1::skin-tone-4')
    await until(() => host.notes().length === 2)
    expect(texts(host.notes())).toEqual([
      expect.stringContaining('Ann reacted with :party-parrot:'),
      expect.stringContaining('Ann reacted with 👍'),
    ])
  })
})

describe('Chats on Slack', () => {
  test('are listed, page by page, and have another name once they are renamed', async () => {
    const { platform, host, room, ann } = await begin()
    for (let i = 0; i < 250; i++) platform.api.world.addChat(`C1${i}`, { name: `more-${i}` })
    platform.api.world.addChat('C2OUT', { name: 'not in it', is_member: false })
    const chats = await host.channel.chats?.()
    expect(chats).toHaveLength(252)
    expect(chats).toEqual(
      expect.arrayContaining([
        { jid: 'slack:D0ANN', name: 'Ann', isGroup: false },
        { jid: room, name: '#others', isGroup: true },
      ]),
    )
    await platform.say(ann, room, 'hello')
    await until(() => host.store.chats.known(room)?.name === '#others')
    await platform.rename(room, 'all-of-us')
    await until(() => host.store.chats.known(room)?.name === '#all-of-us')
    platform.api.world.addChat('C3NEW', { name: 'new' })
    platform.api.world.tell({ type: 'member_joined_channel', user: 'U0HATCH', channel: 'C3NEW' })
    await until(() => host.store.chats.known('slack:C3NEW')?.name === '#new')
    expect(host.channel.reaches('slack:C3NEW')).toBe(true)
    for (const jid of ['slack:../x', 'slack:C', 'slack:u0ann', 'telegram:1'])
      expect(host.channel.reaches(jid)).toBe(false)
  })
})

describe('Buttons on Slack', () => {
  test('answer a question once, whoever presses again, and only for those who are heard', async () => {
    const { platform, host, ours, direct, ann } = await begin({
      config: { groups: { main: { senders: ['U0ANN'] } } },
    })
    const { notices } = platform.api
    await host.command('main', 'q1', {
      type: 'ask_user',
      payload: { questions: [{ question: 'Tea?', options: [{ label: 'Yes' }, { label: 'x'.repeat(200) }] }] },
    })
    host.kick()
    await until(async () => (await ours(direct)).length === 1)
    const [card] = await ours(direct)
    const id = card?.id ?? ''
    expect(card?.buttons?.[1]).toHaveLength(75)
    await platform.press(platform.stranger, direct, id, 'Yes')
    await until(() => notices.length === 1)
    expect(host.sent('q1')).toEqual([])
    await platform.press(ann, direct, id, 'Yes')
    await until(() => host.sent('q1').length === 1)
    platform.pressAction(ann, direct, id, 'q:999999:1')
    platform.pressAction(ann, direct, id, 'forged')
    await until(() => notices.length === 3)
    expect(notices.map(({ user }) => user)).toEqual(['U0MAL', 'U0ANN', 'U0ANN'])
    expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Yes' }] } }])
    await until(async () => (await ours(direct))[0]?.buttons?.length === 0)
    await until(() => platform.api.unacked().length === 0)
  })

  test.each(['Allow', 'Deny'])('%s what an agent may not do alone, by those who may', async label => {
    const platform = await openSlack()
    onTestFinished(platform.close)
    const { direct, room, ann, stranger, api } = platform
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
    const payload = { jid: room, text: '*secret* plan :wave: &amp; <!channel>' }
    post(
      join(live.layout.ipc, 'main', 'tasks'),
      JSON.stringify({ version: 1, id: 'r-1', type: 'send_message', payload }),
      { name: createNames()() },
    )
    const shown = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
    await until(async () => (await shown(direct)).length === 1)
    const [card] = await shown(direct)
    const id = card?.id ?? ''
    expect(card?.buttons).toEqual(expect.arrayContaining(['Allow', 'Deny']))
    // To the letter: nothing that an agent writes is markup in what people decide about.
    expect(card?.text).toContain('*secret* plan :wave: &amp; <!channel>')
    expect(platform.messageIn(direct, id).blocks?.map(({ type }) => type)).toEqual(['rich_text', 'actions'])
    await platform.press(stranger, direct, id, label)
    await until(() => api.notices.length === 1)
    expect(api.notices).toMatchObject([
      { user: stranger.id, text: expect.stringContaining('may not decide') },
    ])
    expect((await shown(direct))[0]?.buttons).toEqual(card?.buttons)
    await platform.press(ann, direct, id, label)
    await until(async () => (await shown(direct))[0]?.buttons?.length === 0)
    if (label === 'Allow') await until(async () => (await shown(room)).length === 1)
    const [approval] = host.store.approvals.list({ limit: 1 })
    expect(approval?.status).toBe(label === 'Allow' ? 'allowed' : 'denied')
    expect(platform.messageIn(direct, id).blocks?.map(({ type }) => type)).toEqual(['rich_text'])
    expect(api.called).toEqual([])
  })
})

describe('The connection to Slack', () => {
  test('is replaced before Slack closes it, and nothing is lost meanwhile', async () => {
    const { platform, host, direct, ann } = await begin()
    const { connections } = platform.api
    const [before] = connections
    await platform.say(ann, direct, 'before')
    before?.socket.send(JSON.stringify({ type: 'disconnect', reason: 'warning', debug_info: { host: 'a' } }))
    before?.socket.send(JSON.stringify({ type: 'disconnect', reason: 'refresh_requested' }))
    await platform.say(ann, direct, 'meanwhile')
    await until(() => connections.length === 1 && connections[0] !== before)
    expect(host.channel.status?.()).toMatchObject({ isConnected: true })
    await platform.say(ann, direct, 'after')
    await until(() => host.heard(direct).length === 3)
    expect(texts(host.heard(direct))).toEqual(['before', 'meanwhile', 'after'])
    expect(host.channel.status?.().lastError).toBeUndefined()
  })

  test('says so where Socket Mode is turned off, and comes back when it is on again', async () => {
    const { platform, host } = await begin()
    platform.api.connections[0]?.socket.send(JSON.stringify({ type: 'disconnect', reason: 'link_disabled' }))
    await until(() => host.channel.status?.().lastError !== undefined)
    expect(host.channel.status?.().lastError).toContain('Socket Mode is off for this app')
    await until(() => host.channel.status?.().isConnected === true)
  })

  test('survives frames and events that make no sense', async () => {
    const failures: unknown[] = []
    const note = (error: unknown) => failures.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const { platform, host, direct, ann } = await begin()
    const socket = platform.api.connections[0]?.socket
    for (const frame of [
      'not json',
      'null',
      '[]',
      '42',
      '{"type":7}',
      '{"type":"events_api"}',
      '{"type":"events_api","envelope_id":"e","payload":{}}',
      '{"type":"events_api","envelope_id":"e","payload":{"event":null}}',
      '{"type":"interactive","envelope_id":"e","payload":null}',
      '{"type":"slash_commands","envelope_id":"e","payload":{"command":"/x"}}',
    ])
      socket?.send(frame)
    const { world } = platform.api
    for (const event of [
      { type: 'message' },
      { type: 'message', channel: 'D0ANN', user: ann.id, text: 5, ts: 'yesterday' },
      { type: 'message', channel: 'D0ANN', subtype: 'message_changed', ts: world.nextTs() },
      { type: 'message', channel: 'D0ANN', subtype: 'message_deleted', ts: world.nextTs() },
      { type: 'reaction_added', user: ann.id, reaction: '+1', item: { type: 'file', file: 'F1' } },
      { type: 'constructor' },
      { type: 'team_join', user: {} },
    ])
      world.tell(event)
    platform.api.tell('interactive', { type: 'view_submission', user: { id: ann.id } })
    await platform.say(ann, direct, 'still here')
    await until(() => host.heard(direct).length === 1)
    // What is not understood is acknowledged: telling it again would change nothing.
    await until(() => platform.api.unacked().length === 0)
    expect(platform.api.connections).toHaveLength(1)
    expect(failures).toEqual([])
  })

  test('ends when it is told to, although Slack leaves the line open, and while it is being made', async () => {
    const { platform, channel } = await alone({}, { endsWhenClosed: false })
    await channel.disconnect?.()
    await until(() => platform.api.connections.length === 0)
    expect(channel.status?.().isConnected).toBe(false)
    for (const delay of [0, 1, 5, 20]) {
      const other = open(optionsFor(platform.settings))
      await other.connect?.(hostWith())
      await new Promise(done => setTimeout(done, delay))
      await other.disconnect?.()
      await until(() => platform.api.connections.length === 0)
    }
  })

  test('is tried again after the time that Slack asks for', async () => {
    const platform = await openSlack()
    onTestFinished(platform.close)
    platform.api.refuse('apps.connections.open', limit)
    const channel = open(optionsFor(platform.settings))
    onTestFinished(async () => channel.disconnect?.())
    await channel.connect?.(hostWith())
    await until(() => channel.status?.().isConnected === true)
    expect(platform.api.calls.filter(({ method }) => method === 'apps.connections.open')).toHaveLength(2)
  })
})

describe('What goes wrong with Slack', () => {
  test('is said without the tokens, and with what to do', async () => {
    const platform = await openSlack()
    onTestFinished(platform.close)
    const lines: string[] = []
    const log = pino({ level: 'trace' }, { write: line => lines.push(line) })
    const said = (more: object) => check(optionsFor({ ...platform.settings, ...more }, log)).catch(String)
    const token = 'xoxb-not-known-to-anybody'
    const appToken = 'xapp-not-known-to-anybody'
    expect(await said({})).toBe('@hatch in Example')
    const wrong = await said({ token })
    expect(wrong).toContain('Copy both tokens again')
    const wrongApp = await said({ appToken })
    expect(wrongApp).toContain('the app-level token: Slack does not accept this token')
    platform.api.world.app.scopes.delete('files:read')
    expect(await said({})).toContain('the app lacks files:read: add it on the page OAuth & Permissions')
    await platform.down()
    const unreached = await said({ token })
    expect(unreached).toContain('Slack cannot be reached: ')
    const channel = open(optionsFor({ ...platform.settings, token, appToken }, log))
    await channel.connect?.(hostWith())
    await until(() => channel.status?.().lastError !== undefined)
    await channel.disconnect?.()
    expect([wrong, wrongApp, unreached, channel.status?.().lastError, ...lines].join()).not.toMatch(
      /not-known-to-anybody|ticket=/,
    )
  })

  test('with the settings is seen at once', () => {
    const problem = (given: object) => slackSettings.safeParse(given).error?.issues[0]?.message
    expect(problem({ token: 'xapp-1', appToken: 'xapp-1' })).toContain('begins with xoxb-')
    expect(problem({ token: 'xoxb-1', appToken: 'xoxb-1' })).toContain('begins with xapp-')
    expect(problem({ token: 'xoxb-1', appToken: 'xapp-1', server: 'ftp://x' })).toBeDefined()
    expect(problem({ token: ' xoxb-1\n', appToken: 'xapp-1' })).toBeUndefined()
  })
})
