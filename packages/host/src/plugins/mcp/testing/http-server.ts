import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach } from 'vitest'

/** A server over HTTP that is written by hand, so that each test can do one thing wrong. */
export interface Asked {
  request: IncomingMessage
  response: ServerResponse
  /** the message that was posted */
  message: { id?: number; method?: string; params?: Record<string, unknown> }
  /** answers it properly */
  answer(result: object): void
}

export interface HttpServer {
  url: string
  /** every request that came, with the headers it had */
  seen: { method: string; headers: IncomingMessage['headers']; message: Asked['message'] }[]
  /** forgets all sessions */
  forget(): void
  close(): Promise<void>
}

const servers = new Set<Server>()
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers.clear()
})

/** `odd` returns true for what it has dealt with itself. */
export async function serveHttp(odd: (asked: Asked) => boolean, port = 0): Promise<HttpServer> {
  const seen: HttpServer['seen'] = []
  const sessions = new Set<string>()
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const message: Asked['message'] = body === '' ? {} : JSON.parse(body)
    seen.push({ method: request.method ?? '', headers: request.headers, message })
    const answer = (result: object) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
    }
    if (odd({ request, response, message, answer })) return
    const session = String(request.headers['mcp-session-id'])
    if (message.method !== 'initialize' && !sessions.has(session))
      return response.writeHead(404).end('who are you?')
    if (request.method === 'DELETE') return response.end()
    if (request.method !== 'POST') return response.writeHead(405).end()
    if (message.id === undefined) return response.writeHead(202).end()
    switch (message.method) {
      case 'initialize': {
        const id = randomUUID()
        sessions.add(id)
        response.setHeader('mcp-session-id', id)
        return answer({
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'http', version: '1' },
        })
      }
      case 'tools/list':
        return answer({
          tools: [
            { name: 'write', inputSchema: { type: 'object' } },
            { name: 'read', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
          ],
        })
      case 'tools/call':
        return answer({ content: [{ type: 'text', text: 'done' }] })
      default:
        return answer({})
    }
  }).listen(port, '127.0.0.1')
  servers.add(server)
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/mcp`,
    seen,
    forget: () => sessions.clear(),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
