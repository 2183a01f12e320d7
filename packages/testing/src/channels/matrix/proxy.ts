import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Stands before the homeserver: it can go away, refuse, change what passes, and remembers what was asked. */
export interface Proxy {
  url(): string
  /** of requests that were answered by the homeserver */
  asked: { method: string; path: string; body: string }[]
  /** answers in place of the homeserver; undefined: it is asked */
  intercept: ((asked: Asked) => Answer | undefined) | undefined
  /** the homeserver is asked for this path instead */
  rewrite: ((path: string) => string) | undefined
  /** what the homeserver answered, changed */
  change: ((asked: Asked, body: string) => string) | undefined
  down(): Promise<void>
  up(): Promise<void>
}
interface Asked {
  method: string
  path: string
}
interface Answer {
  status: number
  body: object
}

const bytesOf = async (stream: IncomingMessage) => Buffer.concat(await stream.toArray())

export async function startProxy(socketPath: string): Promise<Proxy> {
  let port = 0
  let isUp = true
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = 'GET', url: path = '/', headers } = incoming
    const body = await bytesOf(incoming)
    const instead = proxy.intercept?.({ method, path })
    if (instead) {
      outgoing.writeHead(instead.status, { 'content-type': 'application/json' })
      outgoing.end(JSON.stringify(instead.body))
      return
    }
    const forwarded = request(
      {
        socketPath,
        method,
        path: proxy.rewrite?.(path) ?? path,
        headers: { ...headers, 'x-forwarded-for': '127.0.0.1' },
      },
      async response => {
        proxy.asked.push({ method, path, body: body.toString() })
        const received = await bytesOf(response)
        const changed = proxy.change
          ? Buffer.from(proxy.change({ method, path }, received.toString()))
          : received
        const { 'transfer-encoding': _, ...rest } = response.headers
        outgoing.writeHead(response.statusCode ?? 502, { ...rest, 'content-length': changed.length })
        outgoing.end(changed)
      },
    )
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    forwarded.end(body)
  }
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy())
  })
  const up = () =>
    new Promise<void>(resolve => {
      isUp = true
      server.listen(port, '127.0.0.1', () => {
        port = (server.address() as AddressInfo).port
        resolve()
      })
    })
  const proxy: Proxy = {
    url: () => `http://127.0.0.1:${port}`,
    asked: [],
    intercept: undefined,
    rewrite: undefined,
    change: undefined,
    up,
    down: () =>
      new Promise(resolve => {
        if (!isUp) return resolve()
        isUp = false
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  await up()
  return proxy
}
