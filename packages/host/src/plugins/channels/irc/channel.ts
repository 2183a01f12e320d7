import { randomUUID } from 'node:crypto'
import { abortable, pause, within } from '../../../base/pause.ts'
import { type Channel, type ChannelHost, DeliveryError, type Outgoing } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { type MarkdownStyle, plain, renderMarkdown } from '../markdown.ts'
import { callIn } from '../nickname.ts'
import { type IrcEvent, type Line, openLine } from './line.ts'
import { createPeople } from './people.ts'
import type { IrcSettings } from './settings.ts'

type Options = ChannelOptions<IrcSettings>

/** what is being sent when the channel is disconnected has so long to arrive */
const farewellMs = 1500
const answerMs = 30_000
/** lines that may be written at once before we pause */
const burst = 4
/** a few lines, so that not all of a long answer is said again where one of them fails */
const longestMessage = 1000
const nobodyIsHeard = 'nobody is heard: this network does not say who has which account'

const isChannel = (target: string) => /^[#&]/.test(target)
const marked = (code: string) => (inner: string) => code + inner + code
const style: MarkdownStyle = {
  ...{ ...plain, bold: marked('\x02'), italic: marked('\x1d'), strike: marked('\x1e') },
}
const controls = /[^\P{Cc}\n]/gu
/** A colour has digits behind its letter. */
const formatting = new RegExp(`${String.fromCharCode(3)}(?:\\d{1,2}(?:,\\d{1,2})?)?|\\p{Cc}`, 'gu')

export async function check(options: Options): Promise<string> {
  const { client, hasAccounts, close } = await openLine(options, AbortSignal.timeout(answerMs))
  await close()
  const { nicknames, server } = options.settings
  const heard = nicknames ? 'people are heard by nicknames, which anybody can take' : nobodyIsHeard
  return `${client.user.nick} on ${client.network.name || server}${hasAccounts ? '' : `; ${heard}`}`
}

type Here = Line & { people: ReturnType<typeof createPeople> }

/** IRC keeps nothing: what cannot be stored now is lost. */
async function hear(host: ChannelHost, { client, people }: Here, now: number, event: IrcEvent) {
  const { nick = '', target = '', message = '', type, tags } = event
  const sender = people.senderOf(event)
  if (event.from_server || (type !== 'privmsg' && type !== 'action') || sender === undefined) return
  const isGroup = isChannel(target)
  const jid = `irc:${isGroup ? client.caseLower(target) : sender}`
  const words = message.replace(formatting, '')
  const { text, isCall } = isGroup ? callIn(words, client.user.nick) : { text: words, isCall: false }
  host.knows({ jid, name: isGroup ? target : nick, isGroup })
  await host.receive({
    ...{ jid, sender, senderName: nick, at: now, mentioned: isCall },
    ...(tags?.msgid && { externalId: tags.msgid }),
    text: type === 'action' ? `* ${nick} ${text}` : text,
  })
}

export function open(options: Options): Channel {
  const { settings, log, now } = options
  const startedAt = now()
  const waiting = new Map<string, { target: string; done: PromiseWithResolvers<void> }>()
  let connection: Connection | undefined
  let line: Here | undefined
  let freeAt = 0
  let isClosing = false
  const sending = new Set<Promise<void>>()

  const pace = async () => {
    const gap = settings.pause * 1000
    const at = Math.max(freeAt, performance.now())
    freeAt = at + gap
    await pause(Math.max(0, at - performance.now() - burst * gap))
  }

  const run = async (host: ChannelHost, signal: AbortSignal, connected: () => void) => {
    const opened = await openLine(options, signal)
    const { client } = opened
    const here = { ...opened, people: createPeople(client, settings.nicknames) }
    client.on('message', event => {
      hear(host, here, now(), event).catch(error =>
        log.error({ reason: String(error) }, 'what somebody said on IRC is lost'),
      )
    })
    client.on('pong', ({ message = '' }) => waiting.get(message)?.done.resolve())
    client.on('irc error', ({ nick, channel, error, reason }) => {
      const refused = new DeliveryError(`The server refused it: ${reason ?? error}.`)
      if (channel !== undefined) connection?.failed(`${channel}: ${refused.message}`)
      for (const { target, done } of waiting.values()) if (target === (channel ?? nick)) done.reject(refused)
    })
    try {
      for (const channel of settings.channels) client.join(channel)
      line = here
      connected()
      if (!opened.hasAccounts && !settings.nicknames) connection?.failed(nobodyIsHeard)
      await abortable(opened.ended, signal)
    } finally {
      line = undefined
      for (const { done } of waiting.values()) done.reject(new Error('The connection has ended.'))
      await opened.close()
    }
  }

  /** The server takes lines in their order: once it answers a ping, it has what came before, or has refused it. */
  const confirmed = async ({ client }: Line, target: string) => {
    const key = randomUUID()
    const done = Promise.withResolvers<void>()
    waiting.set(key, { target, done })
    try {
      client.raw('PING', key)
      await abortable(done.promise, AbortSignal.timeout(answerMs))
    } finally {
      waiting.delete(key)
    }
  }

  const send = async ({ jid, text, kind, card }: Outgoing) => {
    const here = line
    if (!here) throw new Error('There is no connection to the IRC server.')
    const name = jid.slice('irc:'.length)
    const target = isChannel(name) ? name : await here.people.nicknameOf(name)
    // Control characters give orders to other people's programs.
    const safe = text.toWellFormed().replaceAll('\r\n', '\n').replace(controls, '\ufffd')
    // What somebody is to decide about is shown to the letter.
    const isExact = kind === 'approval' || card?.kind === 'approval'
    const shown = isExact ? safe : renderMarkdown(safe, style) || safe
    for (const one of shown.split('\n').filter(Boolean)) {
      await pace()
      here.client.say(target, one)
    }
    await confirmed(here, target)
  }

  return {
    name: 'irc',
    reaches: jid => /^irc:[^\s,:]+$/.test(jid),
    messageLimit: longestMessage,
    pairs: true,
    status: () => connection?.status() ?? { isConnected: false, since: startedAt },
    async connect(host) {
      connection = keepConnected({ run: (signal, connected) => run(host, signal, connected), log, now })
    },
    async send(message) {
      // What the server has and has not confirmed would be said twice.
      if (isClosing) throw new Error('The host is stopping.')
      const sent = send(message)
      sending.add(sent)
      try {
        await sent
      } finally {
        sending.delete(sent)
      }
    },
    async disconnect() {
      isClosing = true
      await within(farewellMs, Promise.allSettled(sending))
      await connection?.stop()
    },
  }
}
