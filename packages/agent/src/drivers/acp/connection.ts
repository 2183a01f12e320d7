import { setTimeout as sleep } from 'node:timers/promises'
import { client, methods, PROTOCOL_VERSION, RequestError, type SessionUpdate } from '@agentclientprotocol/sdk'
import { reasonOf } from '@hatchway/spool'
import { z } from 'zod'
import type { DriverContext } from '../types.ts'
import { openPermissions } from './permission.ts'
import { AcpProblem, quoted } from './problems.ts'
import { startProgram } from './program.ts'

/** One running agent with one session, from the answer to `session/new` or its like until it ends. */
export interface Connection {
  sessionId: string
  /** whether it goes on with the session that was asked for */
  isResumed: boolean
  isOpen(): boolean
  /** what the agent tells goes to `take`; when `stopped` fires it is asked to end its turn, and killed if it does not */
  prompt(text: string, take: (update: SessionUpdate) => void, stopped: AbortSignal): Promise<string>
  end(): Promise<void>
  kill(): void
}

/** Of what it says of itself, what counts here. */
const aboutSchema = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().nullish(),
      sessionCapabilities: z.object({ resume: z.unknown() }).nullish(),
    })
    .nullish(),
  authMethods: z.array(z.object({ id: z.string() })).nullish(),
})
type About = z.infer<typeof aboutSchema>
const madeSchema = z.object({ sessionId: z.string().min(1).max(512) })
const promptedSchema = z.object({ stopReason: z.string().max(64) })

const startMs = 60_000
/** It starts the MCP servers, and loads a whole conversation. */
const sessionMs = 120_000
const cancelMs = 5000
const loginWanted = -32_000

interface Turn {
  take(update: SessionUpdate): void
  stopped: AbortSignal
}

/** Throws an `AcpProblem`. `wanted`: the session to go on with. */
export async function connect(context: DriverContext, wanted: string | null): Promise<Connection> {
  const { environment, emit } = context
  const program = startProgram(context)
  const mayDo = openPermissions(context)
  let sessionId: string | undefined
  let turn: Turn | undefined

  const connection = client({ name: 'hatchway' })
    // What is told between turns, of other sessions, or while a conversation is loaded, is about nothing new.
    .onNotification(methods.client.session.update, ({ params }) => {
      if (params.sessionId === sessionId) turn?.take(params.update)
    })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) =>
      turn && params.sessionId === sessionId
        ? mayDo(params, AbortSignal.any([signal, turn.stopped]))
        : { outcome: { outcome: 'cancelled' } },
    )
    .connect(program.stream)
  const { agent } = connection

  const explained = async (error: unknown): Promise<Error> => {
    if (error instanceof AcpProblem) return error
    if (connection.signal.aborted) return program.problem()
    const { code, data } = error instanceof RequestError ? error : { code: undefined, data: undefined }
    if (code === loginWanted)
      return new AcpProblem('acp_login', `${program.name} wants a login: ${quoted(reasonOf(error))}.`)
    const details = data === undefined ? '' : ` (${quoted(JSON.stringify(data))})`
    return new AcpProblem(
      'acp_failed',
      `${program.name} reports an error: ${quoted(reasonOf(error)).replace(/\.$/, '')}${details}.`,
    )
  }
  const within = async <T>(ms: number, what: string, answer: Promise<T>): Promise<T> => {
    const timer = new AbortController()
    const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
      throw new AcpProblem('acp_silent', `${program.name} did not answer ${what} within ${ms / 1000} s.`)
    })
    late.catch(() => {})
    try {
      return await Promise.race([answer, late])
    } finally {
      timer.abort()
    }
  }
  /** The library checks what agents ask, not what they answer. */
  const ask = async <T>(answer: z.ZodType<T>, method: string, params: object, ms?: number): Promise<T> => {
    const asked = agent.request<unknown>(method, params)
    const said = answer.safeParse(await (ms === undefined ? asked : within(ms, method, asked)))
    if (said.success) return said.data
    const where = said.error.issues.map(({ path }) => path.join('.') || 'all of it').join(', ')
    throw new AcpProblem(
      'acp_not_understood',
      `What ${program.name} answered to ${method} is not understood: ${quoted(where)}.`,
    )
  }
  const place = { cwd: environment.groupDirectory, mcpServers: [hatchIn(context)] }
  const open = async ({ agentCapabilities }: About) => {
    const canResume = agentCapabilities?.sessionCapabilities?.resume != null
    const canLoad = agentCapabilities?.loadSession === true
    if (wanted !== null && (canResume || canLoad)) {
      const method = canResume ? methods.agent.session.resume : methods.agent.session.load
      try {
        await ask(z.unknown(), method, { ...place, sessionId: wanted }, sessionMs)
        return { id: wanted, isResumed: true }
      } catch (error) {
        if (!(error instanceof RequestError) || error.code === loginWanted) throw error
        emit({
          type: 'step',
          kind: 'notice',
          text: `The earlier conversation cannot be gone on with; a new one begins. ${quoted(error.message)}`,
        })
      }
    }
    const { sessionId } = await ask(madeSchema, methods.agent.session.new, place, sessionMs)
    return { id: sessionId, isResumed: false }
  }
  const logIn = async ({ authMethods }: About) => {
    // The key in the environment is the host's placeholder; every other way needs a person.
    const method = authMethods?.find(({ id }) => /api[-_]?key/i.test(id))
    if (method) await ask(z.unknown(), methods.agent.authenticate, { methodId: method.id }, startMs)
    return method !== undefined
  }

  try {
    const about = await ask(
      aboutSchema,
      methods.agent.initialize,
      {
        protocolVersion: PROTOCOL_VERSION,
        // Its own files and shells are in the sandbox already. It is lent none of the runner's.
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
        clientInfo: { name: 'hatchway', version: '1' },
      },
      startMs,
    )
    if (about.protocolVersion !== PROTOCOL_VERSION)
      throw new AcpProblem(
        'acp_not_understood',
        `${program.name} speaks version ${about.protocolVersion} of the protocol, and not ${PROTOCOL_VERSION}.`,
      )
    const session = await open(about).catch(async error => {
      const isWanted = error instanceof RequestError && error.code === loginWanted
      if (isWanted && (await logIn(about))) return open(about)
      throw error
    })
    sessionId = session.id
    return {
      sessionId: session.id,
      isResumed: session.isResumed,
      isOpen: () => !connection.signal.aborted,
      async prompt(text, take, stopped) {
        program.beginTurn()
        turn = { take, stopped }
        const asked = ask(promptedSchema, methods.agent.session.prompt, {
          sessionId: session.id,
          prompt: [{ type: 'text', text }],
        })
        let timer: NodeJS.Timeout | undefined
        const stop = () => {
          timer = setTimeout(program.kill, cancelMs)
          // Where it cannot be told any more it has ended, which is told elsewhere.
          agent.notify(methods.agent.session.cancel, { sessionId: session.id }).catch(() => {})
        }
        if (stopped.aborted) stop()
        stopped.addEventListener('abort', stop)
        try {
          const { stopReason } = await asked
          // What came just before the answer may not have been handed over yet.
          await new Promise(setImmediate)
          return stopReason
        } catch (error) {
          throw await explained(error)
        } finally {
          clearTimeout(timer)
          stopped.removeEventListener('abort', stop)
          turn = undefined
        }
      },
      async end() {
        await program.end()
        connection.close()
      },
      kill() {
        program.kill()
        connection.close()
      },
    }
  } catch (error) {
    const problem = await explained(error)
    program.kill()
    connection.close()
    throw problem
  }
}

function hatchIn({ environment: { mcpServer } }: DriverContext) {
  const { command, args, env } = mcpServer
  return {
    name: 'hatchway',
    command,
    args,
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
  }
}
