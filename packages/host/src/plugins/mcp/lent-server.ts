import type { Logger } from 'pino'
import type { LaterTool, Service, ServiceContext } from '../../commands/service-tools.ts'
import { defaultAnswerBytes, ServiceRefusal } from '../../services/define.ts'
import { type Failure, failureOf } from './failure.ts'
import { type Lent, lendingOf } from './lending.ts'
import { createServerLifetime, type ServerLifetime } from './server-lifetime.ts'
import type { Session } from './session.ts'
import type { LentServer } from './settings.ts'
import { type Timing, usualTiming } from './timing.ts'

export interface LentServerOptions {
  name: string
  settings: LentServer
  /** the host's, of which a server gets what its settings name */
  environment: NodeJS.ProcessEnv
  version: string
  timing?: Partial<Timing>
}

/** The service for one MCP server: the host runs it, agents use its tools through the hatch. */
export function createLentServer(given: LentServerOptions): Service {
  const { name, settings } = given
  const options = { ...given, timing: { ...usualTiming, ...given.timing } }
  let tools: readonly LaterTool[] = []
  let problems: readonly string[] = []
  let shown = ''
  let log: Logger | undefined
  let changed = () => {}

  const lifetime = createServerLifetime({
    ...options,
    limitBytes: messageLimit(settings),
    listed(listed) {
      const lending = lendingOf(name, settings, listed)
      const showing = JSON.stringify(lending)
      if (showing === shown) return
      shown = showing
      problems = lending.problems
      for (const problem of problems) log?.warn(problem)
      tools = lending.tools.map(lent => toolOf(lifetime, name, lent))
      changed()
    },
    changed: () => changed(),
  })

  return {
    name: `mcp:${name}`,
    tools: () => tools,
    async start(context) {
      log = context.log
      changed = context.changed
      lifetime.start(context.log)
    },
    stop: () => lifetime.stop(),
    state() {
      const { ok, text } = lifetime.state()
      return ok
        ? { ok, text: [`It is up and lends ${count(tools.length)}.`, ...problems].join(' ') }
        : { ok, text }
    },
  }
}

const count = (tools: number) => (tools === 1 ? 'one tool' : `${tools} tools`)

const smallestLimit = 10_485_760

/** Twice what may be answered: how a server writes its JSON can take more room than how the host does. */
export function messageLimit({ tools, answerBytes = defaultAnswerBytes }: LentServer): number {
  const own = tools === undefined || Array.isArray(tools) ? [] : Object.values(tools)
  return Math.max(
    smallestLimit,
    ...[answerBytes, ...own.map(tool => tool.answerBytes ?? 0)].map(size => 2 * size),
  )
}

const toolOf = (lifetime: ServerLifetime, server: string, { remoteName, ...lent }: Lent): LaterTool => ({
  ...lent,
  kind: 'later',
  // The server checks its arguments itself, and says more about them than we could.
  check: input => ({ ok: true, input }),
  call: (input, context) => call(lifetime, server, { remoteName, ...lent }, input, context),
})

async function call(
  lifetime: ServerLifetime,
  server: string,
  tool: Lent,
  input: unknown,
  context: ServiceContext,
) {
  for (let isFirst = true; ; isFirst = false) {
    const session = await lifetime.reach(context.signal)
    const outcome = await ask(session, tool, input, context)
    if ('answer' in outcome) return outcome.answer
    const failure = failureOf(outcome.error, session.library)
    // Nobody waits for this one any longer; but the next one should not have to wait for a server that hangs.
    if (context.signal.aborted || failure.code === 'expired' || failure.begun === 'perhaps')
      lifetime.doubt(session)
    if (context.signal.aborted) throw context.signal.reason
    if (failure.connection === 'lost') session.close({ why: failure.text, how: 'at once' })
    const ending = failure.connection === 'kept' ? undefined : await session.ending
    const mayAgain = failure.begun === 'no' || (failure.begun === 'perhaps' && tool.repeatable)
    if (isFirst && mayAgain && !ending?.isTooLarge) continue
    throw new ServiceRefusal(
      ending?.isTooLarge ? 'answer_too_large' : failure.code,
      [`The server ${server} ${ending?.why ?? failure.text}.`, ...advice(failure)].join(' '),
    )
  }
}

function advice({ code, begun }: Failure): string[] {
  if (code === 'answer_too_large') return ['Ask for less of it.']
  return begun === 'perhaps' || code === 'expired'
    ? ['It may have been done or not: look before asking again.']
    : []
}

type Asked = { answer: object } | { error: unknown }

/** The request queue ends what takes too long; this time-out is only for the case that it does not. */
const spareMs = 10_000

async function ask(session: Session, tool: Lent, input: unknown, context: ServiceContext): Promise<Asked> {
  const { remoteName: name, inputSchema } = tool
  const definition = { name, inputSchema }
  session.work.calls++
  try {
    const { content, structuredContent, isError, _meta } = await session.client.callTool(
      { name, arguments: argumentsOf(input) },
      {
        signal: context.signal,
        timeout: tool.timeoutMs + spareMs,
        resetTimeoutOnProgress: true,
        onprogress: ({ progress, total, message }) =>
          context.progress({
            progress,
            ...(total === undefined ? {} : { total }),
            ...(message === undefined ? {} : { message }),
          }),
        // Without the output schema: a pattern from a stranger must not be run over an answer in the daemon.
        toolDefinition: session.library.isSpecType.Tool(definition)
          ? definition
          : { name, inputSchema: { type: 'object' } },
      },
    )
    const answer = { content, structuredContent, isError, _meta }
    return { answer: Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== undefined)) }
  } catch (error) {
    return { error }
  } finally {
    session.work.calls--
  }
}

const argumentsOf = (input: unknown): Record<string, unknown> =>
  typeof input === 'object' && input !== null ? { ...input } : {}
