import { chmodSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { writeHolder } from '../announce.ts'
import { readHolder } from '../holder.ts'
import type { Host } from '../types.ts'
import { type ApiOptions, createApi } from './app.ts'
import { placeFor, removeStaleSocket, usualSocket } from './socket.ts'

export interface ApiServer {
  /** where it listens */
  socket: string
  close(): Promise<void>
}

const farewellMs = 2000

/** Serves the API to whoever may enter the state directory: the user who started the daemon, and root. */
export async function serveApi(
  host: Host,
  socketPath = usualSocket(host.config.data),
  options: Omit<ApiOptions, 'signal'> = {},
): Promise<ApiServer> {
  const ending = new AbortController()
  const app = createApi(host, { ...options, signal: ending.signal })
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }))
  const place = placeFor(socketPath)
  try {
    removeStaleSocket(place.path)
    await listen(server, place.path)
    chmodSync(place.path, 0o600)
    announce(host.config.data, place.path)
  } catch (error) {
    server.close()
    place.remove()
    throw error
  }
  return {
    socket: place.path,
    async close() {
      ending.abort()
      await end(server)
      place.remove()
    },
  }
}

const listen = (server: Server, path: string) =>
  new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path, readableAll: false, writableAll: false }, () => {
      server.off('error', reject)
      resolve()
    })
  })

/** Requests under way get their answer; a reader that has stopped reading does not hold up the end. */
const end = (server: Server) =>
  new Promise<void>(resolve => {
    const impatience = setTimeout(() => server.closeAllConnections(), farewellMs)
    server.close(() => {
      clearTimeout(impatience)
      resolve()
    })
    server.closeIdleConnections()
  })

function announce(dataDirectory: string, socket: string): void {
  const holder = readHolder(dataDirectory)
  if (holder?.pid === process.pid) writeHolder(dataDirectory, { ...holder, socket })
}
