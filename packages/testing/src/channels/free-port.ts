import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { until } from '../until.ts'

/** A port of this machine that nobody listens on, for servers that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** `hasEnded` tells why it never will. */
export const listening = (port: number, hasEnded: () => string | undefined): Promise<void> =>
  until(`somebody listens on port ${port}`, async () => {
    const reason = hasEnded()
    if (reason !== undefined) throw new Error(reason)
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return true
    } catch (error) {
      if (error instanceof Error && 'code' in error) return false
      throw error
    } finally {
      socket.destroy()
    }
  })
