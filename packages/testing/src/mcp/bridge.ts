import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

/**
 * A server that speaks on standard streams, for a suite that only knows addresses: what comes over HTTP is passed on word
 * for word, to a process of its own for each session.
 */
export async function openBridge(command: string, args: string[], env: Record<string, string>) {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const programs: StdioClientTransport[] = []

  const begin = async () => {
    const program = new StdioClientTransport({ command, args, env, stderr: 'ignore' })
    const session = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => void sessions.set(id, session),
    })
    session.onmessage = message => void program.send(message)
    program.onmessage = message => void session.send(message)
    programs.push(program)
    await program.start()
    await session.start()
    return session
  }

  const http = createServer(async (request, response) => {
    const known = sessions.get(String(request.headers['mcp-session-id']))
    await (known ?? (await begin())).handleRequest(request, response)
  }).listen(0, '127.0.0.1')
  await once(http, 'listening')
  const address = http.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      http.closeAllConnections()
      http.close()
      await Promise.all(programs.map(program => program.close()))
    },
  }
}
