import type { RequestOptions } from '@modelcontextprotocol/client'
import type { Logger } from 'pino'
import type { LaterTool, Service, ServiceContext } from '../../commands/service-tools.ts'
import { defaultAnswerBytes, ServiceRefusal } from '../../services/define.ts'
import { type Failure, failureOf } from './failure.ts'
import { type Lent, lendingOf } from './lending.ts'
import { withinLimit } from './overflow.ts'
import { createServerLifetime, type ServerLifetime } from './server-lifetime.ts'
import type { Session } from './session.ts'
import type { LentServer } from './settings.ts'
import { callAsTask } from './tasks.ts'
import { type Timing, usualTiming } from './timing.ts'

export interface LentServerOptions {
  name: string
  settings: LentServer
  /** the host's, of which a server gets what its settings name */
  environment: NodeJS.ProcessEnv
  version: string
  timing?: Partial<Timing>
  /** for what is too large to be told; where the group's agent finds it */
  leaveFile(folder: string, name: string, content: Buffer): Promise<string>
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
      tools = lending.tools.map(lent => toolOf(lifetime, options, lent))
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

const toolOf = (
  lifetime: ServerLifetime,
  server: LentServerOptions,
  { remoteName, asking, isTask, ...lent }: Lent,
): LaterTool => ({
  ...lent,
  kind: 'later',
  // The server checks its arguments itself, and says more about them than we could.
  check: input => ({ ok: true, input }),
  call: (input, context) => call(lifetime, server, { remoteName, asking, isTask, ...lent }, input, context),
})

async function call(
  lifetime: ServerLifetime,
  { name: server, leaveFile }: LentServerOptions,
  tool: Lent,
  input: unknown,
  context: ServiceContext,
) {
  for (let isFirst = true; ; isFirst = false) {
    const session = await lifetime.reach(context.signal)
    const outcome = await ask(session, tool, input, context)
    if ('answer' in outcome) return fitted(outcome.answer, tool, context, leaveFile)
    if (outcome.error instanceof ServiceRefusal) throw outcome.error
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

/** What is too large to be told is left in the group's folder. */
async function fitted(
  answer: Record<string, unknown>,
  { name, answerBytes, outputSchema }: Lent,
  { group: { folder } }: ServiceContext,
  leaveFile: LentServerOptions['leaveFile'],
) {
  const rest = await withinLimit(answer, {
    limitBytes: answerBytes,
    name,
    giveFile: (file, content) => leaveFile(folder, file, content),
  })
  // A client that was promised a structured answer takes no other, unless something went wrong.
  const isPromised = outputSchema && answer.structuredContent !== undefined
  return isPromised && rest.structuredContent === undefined ? { ...rest, isError: true } : rest
}

type Asked = { answer: Record<string, unknown> } | { error: unknown }

/** The request queue ends what takes too long; this time-out is only for the case that it does not. */
const spareMs = 10_000

async function ask(session: Session, tool: Lent, input: unknown, context: ServiceContext): Promise<Asked> {
  const { remoteName: name, inputSchema } = tool
  const definition = { name, inputSchema }
  const given = argumentsOf(input)
  const options: RequestOptions & { signal: AbortSignal } = {
    signal: context.signal,
    timeout: tool.timeoutMs + spareMs,
    resetTimeoutOnProgress: true,
    onprogress: ({ progress, total, message }) =>
      context.progress({
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      }),
  }
  session.work.calls++
  try {
    if (tool.asking) return { answer: { ...(await tool.asking(session.client, given, options)) } }
    if (tool.isTask) {
      let step = 0
      return answerFrom(
        await callAsTask(
          session.client,
          { name, arguments: given },
          {
            ...options,
            ttlMs: tool.timeoutMs,
            said: message => context.progress({ progress: ++step, message }),
          },
        ),
      )
    }
    return answerFrom(
      await session.client.callTool(
        { name, arguments: given },
        {
          ...options,
          // Without the output schema: a pattern from a stranger must not be run over an answer in the daemon.
          toolDefinition: session.library.isSpecType.Tool(definition)
            ? definition
            : { name, inputSchema: { type: 'object' } },
        },
      ),
    )
  } catch (error) {
    return { error }
  } finally {
    session.work.calls--
  }
}

function answerFrom({ content, structuredContent, isError, _meta }: Record<string, unknown>): Asked {
  const answer = { content, structuredContent, isError, _meta }
  return { answer: Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== undefined)) }
}

const argumentsOf = (input: unknown): Record<string, unknown> =>
  typeof input === 'object' && input !== null ? { ...input } : {}
