import { z } from 'zod'
import { pause } from '../../../base/pause.ts'
import { createPace } from '../../../chat/channels/pace.ts'
import type { Channel, ChannelHost } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected, statusOf } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { createClient, findServer, MatrixRefusal } from './client.ts'
import { longestMessage } from './delivery.ts'
import { isOurs, roomIn } from './events.ts'
import { type Link, openLink } from './link.ts'
import { logIn, whoIs } from './session.ts'
import type { MatrixSettings } from './settings.ts'

const checkMs = 30_000
/** for so long the server shows it; it is renewed before */
const typingMs = 30_000
const typingAgainMs = 20_000
/** what is being sent when the channel is disconnected has so long to arrive */
const farewellMs = 5000

type Options = ChannelOptions<MatrixSettings>

/** Logs in and out again: a session that is in use is not disturbed. */
export async function check({ settings }: Options): Promise<string> {
  const signal = AbortSignal.timeout(checkMs)
  const server = await findServer(settings.server, signal)
  const { user, password, token } = settings
  if (token !== '') await whoIs(server, settings, signal)
  const login = token === '' ? await logIn(server, settings, { signal }) : undefined
  if (login && login.user_id !== user) throw new Error(`This is ${login.user_id}, and not ${user}.`)
  const client = createClient({
    server,
    secrets: [password, token],
    token: login?.access_token ?? token,
    signal,
  })
  const profile = await client.ask(z.object({ displayname: z.string().nullish() }), 'GET', [
    'v3',
    'profile',
    user,
  ])
  if (login) await client.ask(z.unknown(), 'POST', ['v3', 'logout'], { body: {} })
  return `${user}${profile.displayname ? ` (${profile.displayname})` : ''} on ${server}`
}

export function open(options: Options): Channel {
  const { log, now } = options
  const created = now()
  const closing = new AbortController()
  const typing = new Map<string, NodeJS.Timeout>()
  const underWay = new Set<Promise<unknown>>()
  let link: Link | undefined
  let connection: Connection | undefined
  let isClosing = false
  /** Homeservers count what an account sends in all rooms together, and say how long to wait. */
  const pace = createPace({ now })

  const receive = async (host: ChannelHost, signal: AbortSignal, connected: () => void) => {
    link ??= await openLink({
      ...options,
      host,
      closing: closing.signal,
      limited(ms) {
        connection?.limitedUntil(now() + ms)
        pace.hold(ms)
      },
      report: problem => connection?.failed(new Error(problem)),
    })
    try {
      await link.receive(signal, connected)
    } catch (error) {
      if (error instanceof MatrixRefusal && error.code === 'M_UNKNOWN_TOKEN') {
        const ended = link
        link = undefined
        await ended.end(error.isSoft)
      }
      if (error instanceof MatrixRefusal && error.retryAfterMs !== undefined)
        await pause(error.retryAfterMs, signal)
      throw error
    }
  }

  /** The keys may be closed only when nothing is encrypted with them any more. */
  const during = async <T>(work: (open: Link) => Promise<T>): Promise<T> => {
    if (!link || isClosing) throw new Error('Matrix is not connected. It is tried again.')
    const running = work(link)
    underWay.add(running)
    try {
      return await running
    } finally {
      underWay.delete(running)
    }
  }

  const showTyping = (jid: string, on: boolean) => {
    during(open => open.typing(roomIn(jid), on ? typingMs : 0)).catch(error =>
      log.debug({ jid, reason: String(error) }, 'typing could not be shown'),
    )
  }

  return {
    name: 'matrix',
    reaches: isOurs,
    messageLimit: longestMessage,
    showsCards: true,
    pairs: true,
    pace,
    status: () => ({ ...statusOf(connection, created, now()), pace: pace.status() }),
    async connect(host) {
      connection = keepConnected({ run: (signal, connected) => receive(host, signal, connected), log, now })
    },
    send: (message, part) => during(({ delivery }) => delivery.send(message, part)),
    edit: (delivered, message) => during(({ delivery }) => delivery.edit(delivered, message)),
    chats: () => during(open => open.chats()),
    typing(jid, on) {
      const before = typing.get(jid)
      clearInterval(before)
      typing.delete(jid)
      if (!on && !before) return
      showTyping(jid, on)
      if (on) typing.set(jid, setInterval(() => showTyping(jid, true), typingAgainMs).unref())
    },
    async disconnect() {
      for (const interval of typing.values()) clearInterval(interval)
      typing.clear()
      isClosing = true
      const farewell = setTimeout(() => closing.abort(), farewellMs)
      await connection?.stop()
      await Promise.allSettled(underWay)
      clearTimeout(farewell)
      closing.abort()
      await link?.close()
      link = undefined
    },
  }
}
