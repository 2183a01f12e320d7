import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { lockFolder } from '../../../../host/src/plugins/channels/library.ts'
import type { Baileys } from '../../../../host/src/plugins/channels/whatsapp/library.ts'

/** What the channel's library is made of, for the other side of the line. */
const fromChannel = createRequire(`${lockFolder('whatsapp')}/package.json`)

/** The same module that the channel loads. */
export const loadBaileys = async (): Promise<Baileys> =>
  import(pathToFileURL(fromChannel.resolve('baileys')).href)

export interface ServerSocket {
  on(event: 'message', listener: (data: Buffer) => void): void
  on(event: 'close', listener: () => void): void
  send(data: Uint8Array): void
  close(): void
  terminate(): void
}

interface SocketServer {
  on(event: 'connection', listener: (socket: ServerSocket) => void): void
  clients: Set<ServerSocket>
  close(done: () => void): void
}

type SocketServerClass = new (options: { port: number; host: string }, ready: () => void) => SocketServer

/** Accepts connections at the port, or at any that is free. */
export async function listen(
  port: number,
  accept: (socket: ServerSocket) => void,
): Promise<{ port: number; close(): Promise<void> }> {
  const { WebSocketServer } = fromChannel('ws') as { WebSocketServer: SocketServerClass }
  const ready = Promise.withResolvers<void>()
  const server = new WebSocketServer({ port, host: '127.0.0.1' }, ready.resolve)
  server.on('connection', accept)
  await ready.promise
  return {
    port: (server as unknown as { address(): { port: number } }).address().port,
    async close() {
      const { promise, resolve } = Promise.withResolvers<void>()
      for (const socket of server.clients) socket.terminate()
      server.close(resolve)
      await promise
    },
  }
}
