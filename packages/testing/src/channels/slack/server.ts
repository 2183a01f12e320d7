import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { SlackFailure } from './failure.ts'
import { type MethodContext, methods } from './methods.ts'
import { acceptWebSocket, type ServerSocket } from './websocket.ts'
import { createWorld } from './world.ts'

/** Something the app is told; `attempt` counts from 0, and `acked` once the app has said that it has it. */
interface Told {
  event_id: string
  type: 'events_api' | 'interactive'
  payload: Record<string, unknown>
  attempt: number
}

interface Connection {
  socket: ServerSocket
  /** by envelope: told on this connection, and not acknowledged */
  open: Map<string, { told: Told; timer: NodeJS.Timeout }>
}

/** These are what `refusals` are for. */
const deliveries: ReadonlySet<string> = new Set(['chat.postMessage', 'files.completeUploadExternal'])
/** https://docs.slack.dev/apis/events-api#retries */
const mostAttempts = 3

/**
 * A stand-in for Slack, written from its documentation: https://docs.slack.dev/apis/events-api/using-socket-mode,
 * https://docs.slack.dev/apis/events-api (retries), https://docs.slack.dev/apis/web-api (form fields in, JSON out, 429 with
 * Retry-After) and the pages of the methods and events. What is not acknowledged is told again in a new envelope with
 * `retry_attempt`, also on the next connection; what happens while there is no connection is not told at all, as if the absence
 * were longer than Slack's patience. `ackMs`: how long Slack waits for an acknowledgement.
 */
export async function startSlack(options: { ackMs?: number; endsWhenClosed?: boolean } = {}) {
  const { ackMs = 3000, endsWhenClosed = true } = options
  const world = createWorld()
  const connections: Connection[] = []
  const waiting: Told[] = []
  const acked: Told[] = []
  const tickets = new Set<string>()
  const calls: { method: string; given: Record<string, string> }[] = []
  const refusals: (SlackFailure | undefined)[] = []
  const refusalsOf = new Map<string, (SlackFailure | undefined)[]>()
  /** what was asked for at other addresses than the Web API's, with the token that was shown */
  const fetched: { path: string; token: string | undefined }[] = []
  let server: Server | undefined
  let port = 0
  let last = 0

  const url = (path: string) => `http://127.0.0.1:${port}/${path}`
  const context: MethodContext = { world, url, uploads: new Map(), notices: [], calls: [] }

  const put = (told: Told) => {
    const connection = connections.at(-1)
    if (!connection) return waiting.push(told)
    const envelope_id = `envelope-${++last}`
    const again = () => {
      if (!connection.open.delete(envelope_id)) return
      if (told.type === 'events_api' && told.attempt < mostAttempts)
        put({ ...told, attempt: told.attempt + 1 })
    }
    connection.open.set(envelope_id, { told, timer: setTimeout(again, ackMs) })
    const { type, payload, attempt } = told
    connection.socket.send(
      JSON.stringify({
        envelope_id,
        type,
        payload,
        accepts_response_payload: type === 'interactive',
        ...(type === 'events_api' && { retry_attempt: attempt, retry_reason: attempt > 0 ? 'timeout' : '' }),
      }),
    )
  }
  const tell = (type: Told['type'], payload: Record<string, unknown>) => {
    if (connections.length > 0) put({ event_id: `Ev${++last}`, type, payload, attempt: 0 })
  }
  world.listeners.add(event =>
    tell('events_api', { type: 'event_callback', team_id: 'T0', event_id: `Ev${last + 1}`, event }),
  )

  const connect = (request: IncomingMessage, socket: Parameters<typeof acceptWebSocket>[1]) => {
    const ticket = new URL(request.url ?? '', url('')).searchParams.get('ticket') ?? ''
    if (!tickets.delete(ticket)) return socket.end('HTTP/1.1 408 Request Timeout\r\n\r\n')
    const connection: Connection = {
      open: new Map(),
      socket: acceptWebSocket(request, socket, {
        endsWhenClosed,
        message(text) {
          const { envelope_id } = z.object({ envelope_id: z.string() }).parse(JSON.parse(text))
          const entry = connection.open.get(envelope_id)
          if (!entry) return
          clearTimeout(entry.timer)
          connection.open.delete(envelope_id)
          acked.push(entry.told)
        },
        closed() {
          connections.splice(connections.indexOf(connection), 1)
          for (const { told, timer } of connection.open.values()) {
            clearTimeout(timer)
            if (told.type === 'events_api') put({ ...told, attempt: told.attempt + 1 })
          }
          connection.open.clear()
        },
      }),
    }
    connection.socket.send(
      JSON.stringify({
        type: 'hello',
        num_connections: connections.length + 1,
        connection_info: { app_id: 'A0APP' },
        debug_info: { host: 'stand-in', approximate_connection_time: 18_060 },
      }),
    )
    connections.push(connection)
    for (const told of waiting.splice(0)) put(told)
  }

  const call = (method: string, token: string | undefined, given: Record<string, string>): object => {
    const { app } = world
    calls.push({ method, given })
    const refused = refusalsOf.get(method)?.shift() ?? (deliveries.has(method) ? refusals.shift() : undefined)
    if (refused) throw refused
    if (method === 'apps.connections.open') {
      if (token === app.token) throw new SlackFailure('not_allowed_token_type')
      if (token !== app.appToken) throw new SlackFailure('invalid_auth')
      const ticket = `ticket-${++last}`
      tickets.add(ticket)
      return { url: `ws://127.0.0.1:${port}/link/?ticket=${ticket}&app_id=A0APP` }
    }
    if (token !== app.token) throw new SlackFailure(token === undefined ? 'not_authed' : 'invalid_auth')
    const work = methods[method]
    if (!work) throw new SlackFailure('unknown_method')
    return work(given, context)
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const path = new URL(request.url ?? '', url('')).pathname.slice(1)
    const token = request.headers.authorization?.replace(/^Bearer /, '')
    const body = await bodyOf(request)
    const [, area, id = ''] = /^(upload\/v1|files-pri)\/(?:T0-)?(F\w+)/.exec(path) ?? []
    if (area === 'upload/v1') {
      const upload = context.uploads.get(id)
      if (!upload || body.length !== upload.length) throw new SlackFailure('wrong_length', 400)
      upload.content = body
      return response.end('OK')
    }
    if (area === 'files-pri') {
      fetched.push({ path, token })
      const refused = refusalsOf.get('download')?.shift()
      if (refused) throw refused
      const found = world.files.get(id)
      if (token !== world.app.token || !found)
        return response.writeHead(302, { location: 'https://example.slack.com/?redir=login' }).end()
      return response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(found.content)
    }
    const result = call(
      path.replace(/^api\//, ''),
      token,
      Object.fromEntries(new URLSearchParams(body.toString())),
    )
    answer(response, { ok: true, ...result }, { 'x-oauth-scopes': [...world.app.scopes].join(',') })
  }

  const up = async () => {
    server = createServer((request, response) => {
      handle(request, response).catch(error => {
        const { status, retryAfter, message } =
          error instanceof SlackFailure ? error : new SlackFailure('invalid_arguments')
        if (status !== 200)
          response
            .writeHead(status, retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) })
            .end(message)
        else answer(response, { ok: false, error: message })
      })
    })
    server.on('upgrade', connect)
    const { promise, resolve } = Promise.withResolvers<void>()
    server.listen(port, '127.0.0.1', resolve)
    await promise
    port = (server.address() as AddressInfo).port
  }
  await up()

  return {
    world,
    calls,
    fetched,
    /** whom the app's messages have called */
    called: context.calls,
    notices: context.notices,
    /** what the next deliveries are refused with; undefined: that one is not */
    refusals,
    /** the same for the next calls of one method, or of `download` */
    refuse(method: string, ...with_: (SlackFailure | undefined)[]) {
      refusalsOf.set(method, [...(refusalsOf.get(method) ?? []), ...with_])
    },
    connections,
    acked,
    url,
    tell,
    put,
    unacked: () => connections.flatMap(({ open }) => [...open.values()].map(({ told }) => told)),
    up,
    async down() {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (!server) return
      server.close(() => resolve())
      server.closeAllConnections()
      for (const { socket } of [...connections]) socket.destroy()
      server = undefined
      await promise
    },
  }
}

function answer(response: ServerResponse, content: object, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(content))
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}
