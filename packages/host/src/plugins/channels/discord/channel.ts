import { randomUUID } from 'node:crypto'
import { pause } from '../../../base/pause.ts'
import { createPace } from '../../../chat/channels/pace.ts'
import type { Channel, ChannelHost } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected, statusOf } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { type Core, createApi } from './api.ts'
import { createCursors } from './cursors.ts'
import { createDelivery, longestMessage, longestName } from './delivery.ts'
import { createEvents, type Events } from './events.ts'
import { listen, newSession, type Ws } from './gateway.ts'
import { channelIn, createPlaces, isOurs } from './places.ts'
import { DiscordLimit } from './refusals.ts'
import type { DiscordSettings } from './settings.ts'
import { createWebhooks } from './webhooks.ts'

/** Discord shows it for ten seconds. */
const typingMs = 8000
/** what is being sent when the channel is disconnected has so long to arrive */
const farewellMs = 5000
const mostNamed = 5
/** in all chats together: of 50 requests, which more than messages need */
const mostPerSecond = 40

/** https://docs.discord.com/developers/events/gateway#list-of-intents: servers, messages and reactions in them and alone */
const intents = (1 << 0) | (1 << 9) | (1 << 10) | (1 << 12) | (1 << 13)
const messageContent = 1 << 15
/** flags of an application that has been given the intent: for many servers, and for fewer than 100 */
const readsMessages = (flags = 0) => (flags & ((1 << 18) | (1 << 19))) !== 0

/** View channels, send messages (in threads, too), embed, attach, read history, add reactions, manage webhooks. */
const permissions = [6n, 10n, 11n, 14n, 15n, 16n, 29n, 38n].reduce((sum, bit) => sum | (1n << bit), 0n)

type Options = ChannelOptions<DiscordSettings>

export async function check(options: Options): Promise<string> {
  const { settings, library, now } = options
  const discord = createApi({ ...settings, library, now })
  try {
    const me = await discord.ask((api, signal) => api.users.getCurrent({ signal }))
    const application = await discord.ask((api, signal) => api.applications.getCurrent({ signal }))
    if (application.interactions_endpoint_url)
      throw new Error(
        'this application sends presses of buttons to a web address. Empty the Interactions Endpoint URL at https://discord.com/developers/applications, General Information.',
      )
    const guilds = await discord.ask((api, signal) => api.users.getGuilds({}, { signal }))
    const some = guilds.slice(0, mostNamed).map(({ name }) => name)
    const more = guilds.length > some.length ? ` and ${guilds.length - some.length} more` : ''
    return [
      me.username,
      guilds.length === 0 ? 'in no server yet' : `in ${some.join(', ')}${more}`,
      ...(readsMessages(application.flags)
        ? []
        : [
            'in servers it reads only messages that mention it, as the Message Content Intent is off (https://discord.com/developers/applications, Bot, Message Content Intent)',
          ]),
      `invitation: https://discord.com/oauth2/authorize?client_id=${application.id}&scope=bot&permissions=${permissions}`,
    ].join('; ')
  } finally {
    await discord.close()
  }
}

export function open(options: Options): Channel {
  const { settings, library, log, now } = options
  const closing = new AbortController()
  const discord = createApi({ ...settings, library, now, signal: closing.signal })
  const places = createPlaces(discord)
  const webhooks = createWebhooks({ discord, log, now })
  const session = newSession()
  const created = now()
  let salt: string | undefined
  let events: Events | undefined
  let connection: Connection | undefined
  const pace = createPace({ limit: { messages: mostPerSecond, perMs: 1000 }, now })
  const typing = new Map<string, NodeJS.Timeout>()

  const delivery = createDelivery({
    discord,
    webhooks,
    places,
    readFile: options.readFile,
    salt: () => {
      salt ??= randomUUID()
      return salt
    },
    limited: ms => connection?.limitedUntil(now() + ms),
  })

  const begin = async (host: ChannelHost, types: Core['GatewayDispatchEvents']) =>
    createEvents({
      host,
      discord,
      places,
      cursors: createCursors(host),
      ourselves: { user: '', application: '', roles: new Set() },
      types,
      failed: error => connection?.failed(error),
      log,
    })

  const receive = async (host: ChannelHost, signal: AbortSignal, connected: () => void) => {
    const { GatewayDispatchEvents: types } = await library<Core>('@discordjs/core')
    events ??= await begin(host, types)
    const { take } = events
    const application = await discord.ask((api, given) => api.applications.getCurrent({ signal: given }))
    await listen({
      library: await library<Ws>('@discordjs/ws'),
      token: settings.token,
      intents: readsMessages(application.flags) ? intents | messageContent : intents,
      gateway: await discord.ask((api, given) => api.gateway.getBot({ signal: given })),
      session,
      dispatch(event) {
        if (event.t === types.Ready || event.t === types.Resumed) connected()
        take(event)
      },
      now,
      signal,
    })
  }

  const showTyping = (channel: string) => {
    discord
      .ask((api, signal) => api.channels.showTyping(channel, { signal }))
      .catch(error => log.debug({ channel, reason: String(error) }, 'typing could not be shown'))
  }

  return {
    name: 'discord',
    reaches: isOurs,
    // Where there can be no webhook for a sender, the name goes before the text here.
    messageLimit: longestMessage - longestName - '**: '.length,
    showsSender: true,
    showsCards: true,
    pairs: true,
    pace,
    status: () => ({ ...statusOf(connection, created, now()), pace: pace.status() }),
    async connect(host) {
      salt = host.recall('salt') ?? salt ?? randomUUID()
      host.remember('salt', salt)
      connection = keepConnected({
        run: async (signal, connected) => {
          try {
            await receive(host, signal, connected)
          } catch (error) {
            if (error instanceof DiscordLimit) await pause(error.retryAfterMs, signal)
            throw error
          }
        },
        log,
        now,
      })
    },
    send: delivery.send,
    edit: delivery.edit,
    chats: async () => places.chats(),
    typing(jid, on, thread) {
      clearInterval(typing.get(jid))
      typing.delete(jid)
      if (!on || closing.signal.aborted) return
      const channel = thread ?? channelIn(jid)
      showTyping(channel)
      typing.set(jid, setInterval(() => showTyping(channel), typingMs).unref())
    },
    async disconnect() {
      for (const interval of typing.values()) clearInterval(interval)
      typing.clear()
      setTimeout(() => closing.abort(), farewellMs).unref()
      await connection?.stop()
      await events?.stop()
      await discord.close()
    },
  }
}
