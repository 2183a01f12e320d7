import type { Services } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import type { CallToolResult } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { createHatch } from './hatch.ts'
import { ownTimezone } from './local-time.ts'
import { watchServices } from './services.ts'
import { type CallContext, failed, type Session, type Tool } from './tool.ts'
import { serviceToolsFor, toolsFor } from './tools/index.ts'

/** The tools without the server that offers them: the concierge calls them in its own process. */

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

/** The tools as they are now. */
export interface Offer {
  tools(): ReadonlyMap<string, Tool>
  /** they are others than before */
  onChange(listener: () => void): void
}

/** `timezone`: that of the run; left out: that of this process. */
export function openSession(
  environment: Record<string, string | undefined>,
  { ipc, timezone = ownTimezone() }: { ipc?: string | undefined; timezone?: string },
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
    surroundings: { ipc: directory, main: HATCHWAY_MAIN === '1', timezone },
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

/** What a tool throws is told like any other failure. */
export const called = (
  tool: Tool,
  args: Record<string, unknown>,
  session: Session,
  context: CallContext,
): Promise<CallToolResult> =>
  tool
    .call(args, session, context)
    .catch((error: unknown) => failed({ code: 'failed', message: reasonOf(error) }))
