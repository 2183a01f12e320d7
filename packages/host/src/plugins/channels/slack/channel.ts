import { createWorkQueue } from '../../../base/keyed-queue.ts'
import { pause } from '../../../base/pause.ts'
import type { Channel, ChannelHost } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected, statusOf } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { createApi, type SlackApi, SlackRefusal, type WebApi } from './api.ts'
import { createDelivery, longestMessage } from './delivery.ts'
import { createDirectory, type Directory } from './directory.ts'
import { createEvents, placeOf } from './events.ts'
import { createHistory } from './history.ts'
import { isOurs, type Ourselves } from './said.ts'
import type { SlackSettings } from './settings.ts'
import { type Envelope, openSession, type Session, type SocketMode } from './socket.ts'

const checkMs = 30_000
/** a connection that Slack wants replaced still works for a few seconds */
const refreshPauseMs = 250
/** what is being sent when the channel is disconnected has so long to arrive */
const farewellMs = 5000

/** What the channel asks for; the manifest in docs/channels/slack.md has the same. */
const neededScopes = [
  'app_mentions:read',
  'channels:history',
  'channels:read',
  'chat:write',
  'chat:write.customize',
  'files:read',
  'files:write',
  'groups:history',
  'groups:read',
  'im:history',
  'im:read',
  'mpim:history',
  'mpim:read',
  'reactions:read',
  'reactions:write',
  'users:read',
]

type Options = ChannelOptions<SlackSettings>

const apiOf = (options: Options, token: string, signal: AbortSignal): SlackApi =>
  createApi({
    library: () => options.library<WebApi>('@slack/web-api'),
    token,
    server: options.settings.server,
    signal,
  })

export async function check(options: Options): Promise<string> {
  const signal = AbortSignal.timeout(checkMs)
  const { token, appToken } = options.settings
  const me = await apiOf(options, token, signal).ask(web => web.auth.test())
  try {
    await apiOf(options, appToken, signal).ask(web => web.apps.connections.open({}))
  } catch (error) {
    throw new Error(`the app-level token: ${error instanceof Error ? error.message : String(error)}`)
  }
  const granted = me.response_metadata?.scopes
  const missing = granted ? neededScopes.filter(scope => !granted.includes(scope)) : []
  return [
    `@${me.user} in ${me.team}`,
    ...(missing.length > 0
      ? [
          `the app lacks ${missing.join(', ')}: add ${missing.length === 1 ? 'it' : 'them'} on the page OAuth & Permissions, and install the app again`,
        ]
      : []),
  ].join('; ')
}

export function open(options: Options): Channel {
  const { settings, log, now } = options
  const closing = new AbortController()
  const api = apiOf(options, settings.token, closing.signal)
  const directory = createDirectory({ api, log, now })
  const created = now()
  let connection: Connection | undefined
  const limited = (ms: number) => connection?.limitedUntil(now() + ms)
  const delivery = createDelivery({ api, readFile: options.readFile, limited })

  return {
    name: 'slack',
    reaches: isOurs,
    messageLimit: longestMessage,
    showsSender: true,
    showsCards: true,
    pairs: true,
    status: () => statusOf(connection, created, now()),
    async connect(host) {
      const receiver = createReceiver({ ...options, host, api, directory, limited })
      connection = keepConnected({
        run: async (signal, connected) => {
          try {
            await receiver.run(signal, connected)
          } catch (error) {
            if (error instanceof SlackRefusal && error.retryAfterMs !== undefined)
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
    chats: directory.chats,
    async disconnect() {
      setTimeout(() => closing.abort(), farewellMs).unref()
      await connection?.stop()
    },
  }
}

/**
 * Receives for as long as all goes well. What a chat missed comes before what is said there now. If anything cannot be
 * stored, the whole connection ends: the next one begins where the last stored message of each chat is, and Slack tells
 * again what was not acknowledged.
 */
function createReceiver(
  options: Options & {
    host: ChannelHost
    api: SlackApi
    directory: Directory
    limited(ms: number): void
  },
) {
  const { settings, host, api, directory, log, now } = options
  const history = createHistory({ api, memory: host, limited: options.limited, log })
  const taken = new Set<string>()
  const failures = new Map<string, number>()

  const whoWeAre = async (): Promise<Ourselves> => {
    const { user_id: user, bot_id: bot } = await api.ask(web => web.auth.test())
    if (user === undefined) throw new Error('Slack does not say who the app is.')
    return { user, bot }
  }

  const run = async (signal: AbortSignal, connected: () => void): Promise<void> => {
    const ourselves = await whoWeAre()
    const events = createEvents({ host, api, directory, history, ourselves, taken, failures, log, now })
    const queue = createWorkQueue()
    const failed = Promise.withResolvers<never>()
    // It is looked at once the connection is open.
    failed.promise.catch(() => {})
    const ending = new AbortController()
    const working = AbortSignal.any([signal, ending.signal])
    const inTurn = (place: string, work: () => Promise<void>) =>
      queue.run(place, working, work).catch(error => {
        failed.reject(error)
        throw error
      })
    // Slack may tell something right behind its hello, which must not overtake what came before it.
    const caughtUp = Promise.withResolvers<void>()
    const take = ({ type, body, ack }: Envelope) => {
      const event = type === 'events_api' ? (body as { event?: unknown }).event : undefined
      const work =
        type === 'interactive'
          ? events.press(body)
          : event === undefined
            ? Promise.resolve()
            : caughtUp.promise.then(() => inTurn(placeOf(event), () => events.take(event)))
      work
        .then(ack)
        .catch(error => log.debug({ reason: String(error) }, 'Slack was not told that something arrived'))
    }
    const catchUp = (channel: string) =>
      inTurn(channel, async () => {
        for (const message of await history.missed(channel, working)) {
          working.throwIfAborted()
          await events.hear(message)
        }
      }).catch(error => log.debug({ channel, reason: String(error) }, 'a chat was not caught up with'))

    try {
      await hold({ take, signal: working, failed: failed.promise }, () => {
        for (const channel of history.chats()) void catchUp(channel)
        caughtUp.resolve()
        connected()
      })
    } finally {
      ending.abort(new Error('the connection to Slack has ended'))
      await queue.stop(new Error('the connection to Slack has ended'))
    }
  }

  /** One connection after another: the next is open before the last is closed. */
  const hold = async (
    { take, signal, failed }: { take(envelope: Envelope): void; signal: AbortSignal; failed: Promise<never> },
    begun: () => void,
  ): Promise<void> => {
    const library = await options.library<SocketMode>('@slack/socket-mode')
    const { appToken, server } = settings
    let current: Session | undefined
    try {
      while (!signal.aborted) {
        const before = current
        current = await openSession({ library, appToken, server, signal, take })
        if (before) await before.close()
        else begun()
        if ((await Promise.race([current.over, failed])) === 'closed') return
        await pause(refreshPauseMs, signal)
      }
    } finally {
      await current?.close()
    }
  }
  return { run }
}
