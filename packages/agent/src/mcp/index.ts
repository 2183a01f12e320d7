import { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import about from '../../package.json' with { type: 'json' }
import { complain } from './failure.ts'
import { createHatch } from './hatch.ts'
import { ownTimezone } from './local-time.ts'
import type { Session } from './tool.ts'
import { toolsFor } from './tools/index.ts'

const milliseconds = (otherwise: number) => z.coerce.number().int().min(1).max(86_400_000).default(otherwise)

const environmentSchema = z.object({
  HATCHWAY_IPC: z.string().min(1).default('/workspace/ipc'),
  HATCHWAY_MAIN: z.enum(['0', '1']).default('0'),
  HATCHWAY_EVENTS: z.enum(['auto', 'off']).default('auto'),
  HATCHWAY_LIMITS_FILE_BYTES: z.coerce.number().int().min(1).default(1_048_576),
  HATCHWAY_ANSWER_TIMEOUT_MS: milliseconds(120_000),
  HATCHWAY_PROGRESS_MS: milliseconds(5000),
})

/**
 * Serves the tools on standard input and output until the client is gone (end of input, or output that nobody reads)
 * or SIGINT or SIGTERM comes. Calls under way are then taken back where the host has not begun with them.
 *
 * Starting has no effect: clients start servers only to see what they offer. The first file is written by the first call.
 */
export async function serveMcp(
  options: { environment?: Record<string, string | undefined>; ipc?: string } = {},
): Promise<void> {
  const session = sessionFrom(options.environment ?? process.env, options.ipc)
  const transport = new StdioServerTransport()
  const handle = serveStdio(() => createServer(session), {
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

function sessionFrom(environment: Record<string, string | undefined>, ipc: string | undefined): Session {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value))
  const parsed = environmentSchema.safeParse(given)
  if (!parsed.success) {
    const wrong = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
    throw new Error(`The environment is not as it should be. ${wrong.join('. ')}`)
  }
  const { HATCHWAY_IPC, HATCHWAY_MAIN, ...rest } = parsed.data
  const directory = ipc ?? HATCHWAY_IPC
  return {
    surroundings: { ipc: directory, main: HATCHWAY_MAIN === '1', timezone: ownTimezone() },
    hatch: createHatch({
      ipc: directory,
      timeoutMs: rest.HATCHWAY_ANSWER_TIMEOUT_MS,
      fileBytes: rest.HATCHWAY_LIMITS_FILE_BYTES,
      events: rest.HATCHWAY_EVENTS,
    }),
    progressMs: rest.HATCHWAY_PROGRESS_MS,
  }
}

function createServer(session: Session): McpServer {
  const { surroundings } = session
  const server = new McpServer(
    { name: 'hatchway', title: 'Hatchway', version: about.version },
    {
      instructions:
        'These tools reach the host outside this sandbox. Each waits for the host’s decision: a result means that it ' +
        'happened, an error says whether it did not or whether that is unknown. Times without an offset are in ' +
        `${surroundings.timezone}.`,
    },
  )
  for (const tool of toolsFor(surroundings)) tool.register(server, session)
  return server
}
