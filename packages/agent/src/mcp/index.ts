import { reasonOf } from '@hatchway/spool'
import { McpServer, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import about from '../../package.json' with { type: 'json' }
import { complain } from './failure.ts'
import { called, type Offer, openSession } from './session.ts'
import type { Session } from './tool.ts'

/**
 * Serves the tools on standard input and output until the client is gone (end of input, or output that nobody reads)
 * or SIGINT or SIGTERM comes. Calls under way are then taken back where the host has not begun with them; a service that
 * is at one is asked to stop.
 *
 * Starting has no effect: clients start servers only to see what they offer. The first file is written by the first call.
 */
export async function serveMcp(
  options: { environment?: Record<string, string | undefined>; ipc?: string } = {},
): Promise<void> {
  const { session, offer } = openSession(options.environment ?? process.env, { ipc: options.ipc })
  const transport = new StdioServerTransport()
  const handle = serveStdio(() => createServer(session, offer), {
    transport,
    onerror: error => complain(error.message),
  })
  const end = () => void handle.close()
  process.once('SIGINT', end).once('SIGTERM', end)
  await new Promise<void>(resolve => {
    const closed = transport.onclose
    transport.onclose = () => {
      closed?.()
      resolve()
    }
  })
  process.off('SIGINT', end).off('SIGTERM', end)
}

function createServer(session: Session, offer: Offer): McpServer {
  const mcp = new McpServer(
    { name: 'hatchway', title: 'Hatchway', version: about.version },
    {
      capabilities: { tools: { listChanged: true } },
      instructions:
        'These tools reach the host outside this sandbox. Each waits for the host’s decision: a result means that it ' +
        'happened, an error says whether it did not or whether that is unknown. Times without an offset are in ' +
        `${session.surroundings.timezone}.`,
    },
  )
  const { server } = mcp
  // Handled here and not by registering them: which tools there are is looked up each time, and any name is only a name.
  server.setRequestHandler('tools/list', () => ({
    tools: [...offer.tools().values()].map(tool => tool.listing()),
  }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = offer.tools().get(params.name)
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Tool ${params.name} not found`)
    const result = await called(tool, params.arguments ?? {}, session, context)
    return server.projectCallToolResult(result, tool.listing().outputSchema)
  })
  // A client that only asked who is there has its server replaced by another: the last one made is the one in use.
  offer.tools()
  offer.onChange(() => {
    if (!mcp.isConnected()) return
    server
      .sendToolListChanged()
      .catch((error: unknown) => complain(`a change of the tools could not be told: ${reasonOf(error)}`))
  })
  return mcp
}
