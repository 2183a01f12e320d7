import type { Services } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { McpServer, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import about from '../../package.json' with { type: 'json' }
import { complain } from './failure.ts'
import { createHatch } from './hatch.ts'
import { ownTimezone } from './local-time.ts'
import { watchServices } from './services.ts'
import { failed, type Session, type Tool } from './tool.ts'
import { serviceToolsFor, toolsFor } from './tools/index.ts'

const milliseconds = (otherwise: number) => z.coerce.number().int().min(1).max(86_400_000).default(otherwise)

const environmentSchema = z.object({
  HATCHWAY_IPC: z.string().min(1).default('/workspace/ipc'),
  HATCHWAY_MAIN: z.enum(['0', '1']).default('0'),
  HATCHWAY_EVENTS: z.enum(['auto', 'off']).default('auto'),
  HATCHWAY_LIMITS_FILE_BYTES: z.coerce.number().int().min(1).default(1_048_576),
  HATCHWAY_ANSWER_TIMEOUT_MS: milliseconds(120_000),
  HATCHWAY_PROGRESS_MS: milliseconds(5000),
  HATCHWAY_SERVICES_MS: milliseconds(3000),
})

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
  const { session, offer } = openSession(options.environment ?? process.env, options.ipc)
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

/** The tools as they are now. */
interface Offer {
  tools(): ReadonlyMap<string, Tool>
  /** they are others than before */
  onChange(listener: () => void): void
}

function openSession(
  environment: Record<string, string | undefined>,
  ipc: string | undefined,
): { session: Session; offer: Offer } {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value))
  const parsed = environmentSchema.safeParse(given)
  if (!parsed.success) {
    const wrong = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
    throw new Error(`The environment is not as it should be. ${wrong.join('. ')}`)
  }
  const { HATCHWAY_IPC, HATCHWAY_MAIN, ...rest } = parsed.data
  const directory = ipc ?? HATCHWAY_IPC
  const events = rest.HATCHWAY_EVENTS
  const session: Session = {
    surroundings: { ipc: directory, main: HATCHWAY_MAIN === '1', timezone: ownTimezone() },
    hatch: createHatch({
      ipc: directory,
      timeoutMs: rest.HATCHWAY_ANSWER_TIMEOUT_MS,
      fileBytes: rest.HATCHWAY_LIMITS_FILE_BYTES,
      events,
    }),
    progressMs: rest.HATCHWAY_PROGRESS_MS,
  }
  return { session, offer: createOffer(session, events, rest.HATCHWAY_SERVICES_MS) }
}

function createOffer({ surroundings }: Session, events: 'auto' | 'off', everyMs: number): Offer {
  const own = toolsFor(surroundings)
  const services = watchServices({ ipc: surroundings.ipc, events, everyMs })
  let made: { of: Services; tools: ReadonlyMap<string, Tool> } | undefined
  return {
    tools() {
      const found = services.read()
      if (made?.of !== found) {
        const all = [...own, ...serviceToolsFor(found, surroundings)]
        made = { of: found, tools: new Map(all.map(tool => [tool.name, tool])) }
      }
      return made.tools
    },
    onChange(listener) {
      services.onChange = listener
    },
  }
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
    const result = await tool
      .call(params.arguments ?? {}, session, context)
      .catch((error: unknown) => failed({ code: 'failed', message: reasonOf(error) }))
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
