import { chmodSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { announce } from '../base/announce.ts'
import type { ApiOptions } from './app.ts'
import type { Host } from './host.ts'
import type { Http } from './http.ts'
import { placeFor, removeStaleSocket, usualSocket } from './socket.ts'

export interface ApiServer {
  /** where it listens */
  socket: string
  close(): Promise<void>
}

/**
 * Serves the API to whoever may enter the state directory: the user who started the daemon, and root. Everything that
 * speaks HTTP is loaded when the first one knocks: a daemon that nobody asks does without those fifteen megabytes.
 */
export async function serveApi(
  host: Host,
  socketPath = usualSocket(host.config.data),
  options: Omit<ApiOptions, 'signal'> = {},
): Promise<ApiServer> {
  let http: Promise<Http> | undefined
  const take = async (connection: Socket) => {
    http ??= import('./http.ts').then(({ createHttp }) => createHttp(host, options))
    try {
      ;(await http).take(connection)
    } catch (error) {
      http = undefined
      connection.destroy(error instanceof Error ? error : undefined)
    }
  }
  const server = createServer({ pauseOnConnect: true }, take)
  const place = placeFor(socketPath)
  try {
    removeStaleSocket(place.path)
    await listen(server, place.path)
    chmodSync(place.path, 0o600)
    announce(host.config.data, { socket: place.path })
  } catch (error) {
    server.close()
    place.remove()
    throw error
  }
  return {
    socket: place.path,
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      await (await http)?.close()
      await closed
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
