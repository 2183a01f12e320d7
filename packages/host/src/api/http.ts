import { createServer, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Hono } from 'hono'
import { type ApiOptions, createApi } from './app.ts'
import type { Certificate } from './certificate.ts'
import type { Connections } from './connections.ts'
import type { Host } from './host.ts'
import { isEndless, sendEndless } from './streaming.ts'

/** HTTP on connections that somebody else has accepted. */
export interface Http {
  take(connection: Socket): void
  /** Requests under way get their answer; a reader that has stopped reading does not hold up the end. */
  close(): Promise<void>
}

/** How long a connection may take for what. */
const usualTimes = {
  /** until a request's headers are here, and until a TLS handshake is done */
  headersMs: 10_000,
  /** until the whole request is here: an attachment over a slow line takes a while */
  requestMs: 300_000,
  /** without a byte in either direction */
  stalledMs: 60_000,
  /** between an answer and the next request */
  idleMs: 5000,
  /** how often that is looked at */
  checkMs: 2000,
}
export type Times = typeof usualTimes

const farewellMs = 2000
const pollMs = 20

export const createHttp = (host: Host, options: Omit<ApiOptions, 'signal'>): Http =>
  createHttpFor(signal => createApi(host, { ...options, signal }))

/** `signal` ends whatever streams the application has open. */
export function createHttpFor(
  createApp: (signal: AbortSignal) => Hono,
  certificate?: Certificate | undefined,
  connections?: Connections | undefined,
  times: Times = usualTimes,
): Http {
  const ending = new AbortController()
  const app = createApp(ending.signal)
  const listener = getRequestListener(
    async (request, bindings) => {
      const answer = await app.fetch(request, bindings)
      const { outgoing } = bindings
      if (!isEndless(answer) || !(outgoing instanceof ServerResponse)) return answer
      sendEndless(answer, outgoing).catch(error => outgoing.destroy(error))
      return RESPONSE_ALREADY_SENT
    },
    { overrideGlobalObjects: false },
  )
  const limits = {
    headersTimeout: times.headersMs,
    requestTimeout: times.requestMs,
    keepAliveTimeout: times.idleMs,
    connectionsCheckingInterval: times.checkMs,
  }
  const server = certificate ? certificate.createServer(limits, listener) : createServer(limits, listener)
  if (connections) {
    server.prependListener('request', connections.follow)
    server.timeout = times.stalledMs
    server.on('timeout', connection => {
      // The host may take minutes for an answer. One that lies there unread is another matter.
      const isOurTurn = connections.isAnswering(connection) && connection.writableLength === 0
      if (!isOurTurn) connection.destroy()
    })
  }
  // It never listens, and only a server that does looks for connections that are idle or too slow.
  server.emit('listening')
  const open = new Set<Socket>()
  return {
    take(connection) {
      certificate?.renew()
      open.add(connection)
      connection.once('close', () => open.delete(connection))
      server.emit('connection', connection)
      // It was accepted paused, so that nothing is read before there is somebody to read it.
      connection.resume()
    },
    async close() {
      ending.abort()
      const deadline = performance.now() + farewellMs
      while (open.size > 0 && performance.now() < deadline) {
        server.closeIdleConnections()
        await new Promise(resolve => setTimeout(resolve, pollMs))
      }
      for (const connection of open) connection.destroy()
    },
  }
}
