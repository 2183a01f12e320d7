import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { channelObject, type Message, type World } from './world.ts'

/** The part of the package `ws`, which the channel's library brings along, that a server needs. */
export interface WebSockets {
  WebSocketServer: new (options: {
    noServer: true
  }) => {
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      done: (socket: WebSocket) => void,
    ): void
  }
}

interface WebSocket {
  readyState: number
  on(event: 'message', listener: (data: Buffer) => void): void
  on(event: 'close', listener: (code: number) => void): void
  on(event: 'error', listener: () => void): void
  send(text: string): void
  close(code: number): void
  terminate(): void
}

interface Dispatch {
  s: number
  t: string
  d: unknown
}

interface Session {
  id: string
  intents: number
  seq: number
  /** for a client that resumes */
  events: Dispatch[]
  socket: WebSocket | undefined
}

const isOpen = 1
const identifyWindowMs = 5000
const intent = { guilds: 1, guildMessages: 1 << 9, reactions: 1 << 10, dms: 1 << 12, dmReactions: 1 << 13 }
const messageContent = 1 << 15
const mayRead = (1 << 18) | (1 << 19)

const received = z.discriminatedUnion('op', [
  z.object({ op: z.literal(1), d: z.number().nullable() }),
  z.object({
    op: z.literal(2),
    d: z.object({ token: z.string(), intents: z.number(), properties: z.record(z.string(), z.string()) }),
  }),
  z.object({ op: z.literal(6), d: z.object({ token: z.string(), session_id: z.string(), seq: z.number() }) }),
])

/**
 * The gateway of https://docs.discord.com/developers/events/gateway: hello, heartbeats, identify, resume with the events
 * that were missed, reconnect, invalid sessions, intents and close codes.
 */
export function createGateway(options: {
  world: World
  token: string
  library: WebSockets
  url(): string
  heartbeatMs: number
}) {
  const { world, token } = options
  const server = new options.library.WebSocketServer({ noServer: true })
  const sessions = new Map<string, Session>()
  const sockets = new Set<WebSocket>()
  /** what clients sent, by opcode */
  const sent: { op: number; at: number }[] = []
  let lastSession = 0
  const state = { maxConcurrency: 16, remaining: 1000, isDeaf: false, isSilent: false, lagMs: 0 }
  /** connections that were never answered */
  const unanswered = new Set<Duplex>()

  const write = (socket: WebSocket, payload: object) => {
    if (socket.readyState === isOpen) socket.send(JSON.stringify(payload))
  }
  const tell = (session: Session, t: string, d: unknown) => {
    const event = { s: ++session.seq, t, d: structuredClone(d) }
    session.events.push(event)
    if (session.socket && !state.isDeaf) write(session.socket, { op: 0, ...event })
  }

  const guildObject = (id: string) => {
    const guild = world.guilds.get(id)
    const all = [...world.channels.values()].filter(channel => channel.guild_id === id)
    return {
      id,
      name: guild?.name,
      unavailable: false,
      roles: [
        { id, name: '@everyone' },
        { id: guild?.role, name: 'Hatch', tags: { bot_id: world.bot.id } },
      ],
      channels: all.filter(({ type }) => type !== 11).map(channelObject),
      threads: all.filter(({ type, isArchived }) => type === 11 && !isArchived).map(channelObject),
    }
  }

  const identify = (socket: WebSocket, intents: number): Session | undefined => {
    const recent = sent.filter(({ op, at }) => op === 2 && Date.now() - at < identifyWindowMs)
    if ((intents & messageContent) !== 0 && (world.application.flags & mayRead) === 0) {
      socket.close(4014)
      return undefined
    }
    if (recent.length > state.maxConcurrency) {
      write(socket, { op: 9, d: false })
      return undefined
    }
    state.remaining--
    const session: Session = { id: `session${++lastSession}`, intents, seq: 0, events: [], socket }
    sessions.set(session.id, session)
    tell(session, 'READY', {
      v: 10,
      user: world.bot,
      guilds: [...world.guilds.keys()].map(id => ({ id, unavailable: true })),
      session_id: session.id,
      resume_gateway_url: options.url(),
      application: { id: world.application.id, flags: world.application.flags },
    })
    for (const id of world.guilds.keys()) tell(session, 'GUILD_CREATE', guildObject(id))
    return session
  }

  const resume = (socket: WebSocket, id: string, seq: number): Session | undefined => {
    const session = sessions.get(id)
    if (!session || seq > session.seq) {
      write(socket, { op: 9, d: false })
      return undefined
    }
    session.socket = socket
    for (const event of session.events.filter(({ s }) => s > seq)) write(socket, { op: 0, ...event })
    tell(session, 'RESUMED', {})
    return session
  }

  const serve = (socket: WebSocket) => {
    let session: Session | undefined
    let lastBeat = Date.now()
    sockets.add(socket)
    const watch = setInterval(() => {
      if (Date.now() - lastBeat > 2 * options.heartbeatMs) socket.close(4000)
    }, options.heartbeatMs).unref()
    socket.on('error', () => {})
    socket.on('close', code => {
      clearInterval(watch)
      sockets.delete(socket)
      if (session?.socket !== socket) return
      session.socket = undefined
      // https://docs.discord.com/developers/events/gateway#disconnecting
      if (code === 1000 || code === 1001) sessions.delete(session.id)
    })
    socket.on('message', async data => {
      if (state.lagMs > 0) await setTimeout(state.lagMs)
      const given = received.safeParse(JSON.parse(String(data)))
      if (!given.success) return socket.close(4002)
      const { op, d } = given.data
      sent.push({ op, at: Date.now() })
      if (op === 1) {
        lastBeat = Date.now()
        if (!state.isDeaf) write(socket, { op: 11 })
      } else if (d.token !== token) socket.close(4004)
      else if (session) socket.close(4005)
      else session = op === 2 ? identify(socket, d.intents) : resume(socket, d.session_id, d.seq)
    })
    write(socket, { op: 10, d: { heartbeat_interval: options.heartbeatMs } })
  }

  /** Without the intent, a bot reads what mentions it, what it said itself, and what is said to it alone. */
  const readable = (message: Message, intents: number): Message =>
    (intents & messageContent) !== 0 ||
    world.channels.get(message.channel_id)?.guild_id === undefined ||
    message.author.id === world.bot.id ||
    message.mentions.some(({ id }) => id === world.bot.id)
      ? message
      : { ...message, content: '', attachments: [], embeds: [], components: [] }

  return {
    sessions,
    sent,
    state,
    readable,
    unanswered,
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer) {
      if (!state.isSilent) return server.handleUpgrade(request, socket, head, serve)
      unanswered.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => unanswered.delete(socket))
        .on('end', () => socket.destroy())
        .resume()
    },
    /** Something has happened; sessions are told that have asked for it. */
    dispatch(t: string, d: object, channel?: { guild_id?: string }): void {
      const isDirect = channel !== undefined && channel.guild_id === undefined
      const needed = t.startsWith('MESSAGE_REACTION')
        ? isDirect
          ? intent.dmReactions
          : intent.reactions
        : t.startsWith('MESSAGE_')
          ? isDirect
            ? intent.dms
            : intent.guildMessages
          : t === 'INTERACTION_CREATE'
            ? 0
            : intent.guilds
      for (const session of sessions.values())
        if ((session.intents & needed) === needed)
          tell(session, t, 'content' in d ? readable(d as Message, session.intents) : d)
    },
    write: (payload: object) => {
      for (const socket of sockets) write(socket, payload)
    },
    /** the connection is lost, without a word */
    cut: () => {
      for (const socket of sockets) socket.terminate()
      for (const socket of unanswered) socket.destroy()
    },
    connections: () => sockets.size,
  }
}

export type Gateway = ReturnType<typeof createGateway>
