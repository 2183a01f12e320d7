import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/**
 * The model on loopback. Many agents reach a model only by TCP, and a sandbox has no network: this listens inside of it
 * and passes bytes on to the host's socket, which is where requests are read, checked and limited.
 */
export interface ModelPort {
  port: number
  close(): void
}

const mostConnections = 64

/** Where the environment names a port; rejects when it cannot be had. */
export async function openModelPort(variables: NodeJS.ProcessEnv): Promise<ModelPort | undefined> {
  const wanted = variables.HATCHWAY_MODEL_PORT
  const path = variables.ANTHROPIC_UNIX_SOCKET
  if (!wanted || !path) return undefined
  // Either side may have said all it has to say while it still listens.
  const server = createServer({ allowHalfOpen: true }, client => {
    const model = connect({ path, allowHalfOpen: true })
    client.pipe(model).pipe(client)
    for (const [one, other] of [
      [client, model],
      [model, client],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  server.maxConnections = mostConnections
  server.listen(Number(wanted), '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : Number(wanted),
    close: () => void server.close(),
  }
}
