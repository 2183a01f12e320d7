import { pause } from '../../../base/pause.ts'
import { createPace } from '../../../chat/channels/pace.ts'
import type { Channel, ChannelHost } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected, statusOf } from '../connection.ts'
import { createFailures } from '../failures.ts'
import type { ChannelOptions } from '../kind.ts'
import { createBot, type Grammy, TelegramRefusal } from './bot.ts'
import { createDelivery, longestMessage, longestName } from './delivery.ts'
import { createPool, type Pool } from './pool.ts'
import { chatIn, isOurs } from './said.ts'
import type { TelegramSettings } from './settings.ts'
import { takeUpdates, wantedUpdates } from './updates.ts'

/** how long Telegram holds a request for updates back while there are none */
const pollSeconds = 30
/** one that takes longer than this has lost its line */
const pollMs = 60_000
const checkMs = 30_000
/** Telegram shows it for five seconds */
const typingMs = 4000
/** what is being sent when the channel is disconnected has so long to arrive */
const farewellMs = 5000

/** a name, and no other text in its place */
const plainName = /^[\p{L}\p{M}\p{N} .'_-]{1,32}$/u

type Options = ChannelOptions<TelegramSettings>

export async function check(options: Options): Promise<string> {
  const { token, pool, server } = options.settings
  const signal = AbortSignal.timeout(checkMs)
  const botOf = (one: string) =>
    createBot({ library: () => options.library<Grammy>('grammy'), token: one, server, signal })
  const bot = botOf(token)
  const me = await bot.ask((api, signal) => api.getMe(signal))
  const { url } = await bot.ask((api, signal) => api.getWebhookInfo(signal))
  if (url)
    throw new Error(
      'this bot gives what it hears to a web address (a webhook of another program). Create a bot for Hatchway alone with @BotFather.',
    )
  const others = await Promise.all(
    pool.map(async one => {
      const other = botOf(one)
      try {
        return (await other.ask((api, signal) => api.getMe(signal))).username
      } catch (error) {
        throw new Error(
          `bot ${other.id} of the pool: ${error instanceof Error ? error.message : String(error)}`,
        )
      }
    }),
  )
  return [
    `@${me.username} (${me.first_name})`,
    ...(others.length > 0 ? [`with ${others.map(one => `@${one}`).join(', ')}`] : []),
    ...(me.can_read_all_group_messages
      ? []
      : [
          'in groups it hears only mentions, answers and commands, as its privacy mode is on (/setprivacy at @BotFather)',
        ]),
  ].join('; ')
}

export function open(options: Options): Channel {
  const { settings, log, now } = options
  const closing = new AbortController()
  const botOf = (token: string) =>
    createBot({
      library: () => options.library<Grammy>('grammy'),
      token,
      server: settings.server,
      signal: closing.signal,
    })
  const bot = botOf(settings.token)
  const others = settings.pool.map(botOf)
  const created = now()
  let host: ChannelHost | undefined
  let pool: Pool | undefined
  let connection: Connection | undefined
  const pace = createPace({ limit: { messages: settings.perSecond, perMs: 1000 }, now })
  const typing = new Map<string, NodeJS.Timeout>()

  const delivery = createDelivery({
    bot,
    others,
    botFor: async (sender, jid) => {
      // A bot's name is seen in every chat that it is in.
      if (!host?.mayShowElsewhere(jid) || !plainName.test(sender)) return undefined
      pool ??= createPool({ bots: others, memory: host, log, now })
      return pool.botFor(sender)
    },
    readFile: options.readFile,
    moved: async (from, to) => host?.moved(from, to),
    limited: ms => connection?.limitedUntil(now() + ms),
  })

  const failures = createFailures()

  /**
   * Telegram keeps what was said until it is asked for what comes after it. That is done once all of a batch is stored, so
   * a process that is killed finds it again. The offset is not kept: Telegram knows it, and may begin to count anew.
   */
  const receive = async (to: ChannelHost, signal: AbortSignal, connected: () => void) => {
    const me = await bot.ask(
      (api, given) => api.getMe(given),
      AbortSignal.any([signal, AbortSignal.timeout(pollMs)]),
    )
    const ourselves = { username: me.username, ids: new Set([bot, ...others].map(({ id }) => id)) }
    let offset: number | undefined
    // The first is not held back: it shows whether we are let in.
    let timeout = 0
    while (!signal.aborted) {
      const asked = {
        timeout,
        allowed_updates: wantedUpdates,
        ...(offset !== undefined && { offset }),
      }
      const updates = await bot.ask(
        (api, given) => api.getUpdates(asked, given),
        AbortSignal.any([signal, AbortSignal.timeout(pollMs)]),
      )
      if (timeout === 0) connected()
      timeout = pollSeconds
      await takeUpdates(updates, { host: to, bot, ourselves, failures, log })
      const last = updates.at(-1)?.update_id
      offset = last === undefined ? undefined : last + 1
    }
  }

  const showTyping = (jid: string, thread: string | undefined) => {
    const action = {
      chat_id: chatIn(jid),
      action: 'typing',
      ...(thread !== undefined && { message_thread_id: Number(thread) }),
    } as const
    bot
      .ask((api, signal) => api.sendChatAction(action, signal))
      .catch(error => log.debug({ jid, reason: String(error) }, 'typing could not be shown'))
  }

  return {
    name: 'telegram',
    reaches: isOurs,
    // Where the pool has nobody for a sender, the name goes before the text here.
    messageLimit: others.length > 0 ? longestMessage - longestName - '**: '.length : longestMessage,
    showsSender: others.length > 0,
    showsCards: true,
    pairs: true,
    pace,
    status: () => ({ ...statusOf(connection, created, now()), pace: pace.status() }),
    async connect(given) {
      host = given
      connection = keepConnected({
        run: async (signal, connected) => {
          try {
            await receive(given, signal, connected)
          } catch (error) {
            if (error instanceof TelegramRefusal && error.retryAfterMs !== undefined)
              await pause(error.retryAfterMs, signal)
            throw error
          }
        },
        log,
        now,
      })
    },
    send: delivery.send,
    edit: delivery.edit,
    typing(jid, on, thread) {
      clearInterval(typing.get(jid))
      typing.delete(jid)
      if (!on || closing.signal.aborted) return
      showTyping(jid, thread)
      typing.set(jid, setInterval(() => showTyping(jid, thread), typingMs).unref())
    },
    async disconnect() {
      for (const interval of typing.values()) clearInterval(interval)
      typing.clear()
      setTimeout(() => closing.abort(), farewellMs).unref()
      await connection?.stop()
    },
  }
}
