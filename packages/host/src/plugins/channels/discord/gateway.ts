import type { APIGatewayBotInfo, GatewayDispatchPayload } from '@discordjs/core'
import type { SessionInfo, WebSocketShard } from '@discordjs/ws'
import { abortable, pause, within } from '../../../base/pause.ts'

export type Ws = typeof import('@discordjs/ws')

/** What is known of the session with Discord, from one connection to the next. */
export interface Session {
  /** undefined: the next connection begins a new one */
  info: SessionInfo | undefined
  /** milliseconds since 1970: when the last one was begun */
  identifiedAt: number
}

export const newSession = (): Session => ({ info: undefined, identifiedAt: Number.NEGATIVE_INFINITY })

const handshakeMs = 30_000
const helloMs = 60_000
const readyMs = 30_000
const closeMs = 2000
/** so often a session may be begun: https://docs.discord.com/developers/events/gateway#rate-limiting */
const identifyMs = 5000

/** After these there is nothing to resume: https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway */
const endsSession: ReadonlySet<number> = new Set([
  1000, 1001, 4003, 4004, 4005, 4007, 4009, 4010, 4011, 4012, 4013, 4014,
])
const meanings: Readonly<Record<number, string>> = {
  4004: 'Discord does not know this token. Copy it again: https://discord.com/developers/applications, your application, Bot, Reset Token.',
  4011: 'This bot is in more servers than one connection serves. Create a bot for Hatchway alone.',
  4014: 'The Message Content Intent is off. Turn it on: https://discord.com/developers/applications, your application, Bot, Message Content Intent.',
}

interface ListenOptions {
  library: Ws
  token: string
  intents: number
  gateway: APIGatewayBotInfo
  session: Session
  /** what has happened, in its order; must not throw */
  dispatch(event: GatewayDispatchPayload): void
  now(): number
  signal: AbortSignal
}

/**
 * One connection to Discord's gateway: resumes the session if there is one, which brings what was missed, and begins a
 * new one otherwise. Rejects when the connection ends; whoever called connects again.
 */
export async function listen(options: ListenOptions): Promise<never> {
  const { library, session, gateway, signal } = options
  if (!session.info && gateway.session_start_limit.remaining < 1)
    throw new Error(
      `This bot has connected too often today. Discord lets it in again in ${Math.ceil(gateway.session_start_limit.reset_after / 60_000)} minutes.`,
    )
  // The library would fail on a wrong address where nobody can catch it.
  if (!isAddress(gateway.url)) throw new Error(`Discord gave an address that is none: ${gateway.url}`)
  signal.throwIfAborted()
  const over = Promise.withResolvers<never>()
  const connection = { isOver: false }
  const end = (error: Error) => {
    connection.isOver = true
    over.reject(error)
  }
  const shard = new library.WebSocketShard(contextOf(options, connection), 0)
  const { WebSocketShardEvents: events } = library
  shard.on(events.Dispatch, event => options.dispatch(event))
  shard.on(events.SocketError, error => end(new Error(`Discord cannot be reached: ${error.message}`)))
  shard.on(events.Error, error => end(new Error(`The connection to Discord failed: ${error.message}`)))
  shard.on(events.Closed, code => {
    if (endsSession.has(code)) session.info = undefined
    end(new Error(meanings[code] ?? `Discord has closed the connection (${code}).`))
  })
  shard.connect().catch(end)
  try {
    return await abortable(over.promise, signal)
  } finally {
    connection.isOver = true
    await close(shard)
  }
}

/** What the library asks for. It would connect again by itself, for ever and twice a second: we do that, with growing pauses. */
function contextOf(
  { library, token, intents, gateway, session, now }: ListenOptions,
  connection: { readonly isOver: boolean },
): ConstructorParameters<Ws['WebSocketShard']>[0] {
  return {
    options: {
      token,
      intents,
      gatewayInformation: gateway,
      shardCount: 1,
      identifyProperties: { os: 'linux', browser: 'hatchway', device: 'hatchway' },
      version: '10',
      encoding: library.Encoding.JSON,
      compression: null,
      useIdentifyCompression: false,
      initialPresence: null,
      largeThreshold: null,
      handshakeTimeout: handshakeMs,
      helloTimeout: helloMs,
      readyTimeout: readyMs,
    },
    // It asks for this before it connects once more. A promise that is never kept is the one way to stop it.
    retrieveSessionInfo: () => (connection.isOver ? new Promise(() => {}) : (session.info ?? null)),
    updateSessionInfo(_, info) {
      if (connection.isOver) return
      // Discord counts from when it heard us, which is later than when we spoke. Now it has.
      if (info && !session.info) session.identifiedAt = now()
      const resumeURL = info && isAddress(info.resumeURL) ? info.resumeURL : gateway.url
      session.info = info ? { ...info, resumeURL } : undefined
    },
    async waitForIdentify(_, signal) {
      const everyMs = identifyMs / Math.max(1, gateway.session_start_limit.max_concurrency)
      await pause(Math.max(0, session.identifiedAt + everyMs - now()), signal)
      signal.throwIfAborted()
      session.identifiedAt = now()
    },
  }
}

const isAddress = (url: string) => URL.canParse(url) && /^wss?:$/.test(new URL(url).protocol)

async function close(shard: WebSocketShard): Promise<void> {
  const socket = socketOf(shard)
  // One that is not open yet would be left behind by the library, and go on to open.
  if (socket?.readyState === 0) return socket.terminate()
  await within(closeMs, shard.destroy({ code: 1000 }))
  if (!socket || socket.readyState === 3) return
  socket.on('error', () => {})
  socket.terminate()
}

interface Socket {
  readyState: number
  on(event: 'error', listener: () => void): void
  terminate(): void
}

function socketOf(shard: WebSocketShard): Socket | undefined {
  const socket: unknown = Reflect.get(shard, 'connection')
  return isSocket(socket) ? socket : undefined
}

const isSocket = (value: unknown): value is Socket =>
  typeof value === 'object' &&
  value !== null &&
  'terminate' in value &&
  'readyState' in value &&
  'on' in value
