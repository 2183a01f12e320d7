import type { Logger } from 'pino'
import { failureOf, NotOpened } from './failure.ts'
import { openSession, type SessionOptions } from './session.ts'

export type Tried = { ok: true; tools: readonly unknown[] } | { ok: false; problem: string; detail: string }

type TrialOptions = Omit<SessionOptions, 'library' | 'isModern' | 'log' | 'listChanged' | 'doubt'> & {
  log: Logger
}

/** Starts a server, or asks an address, has its tools listed, and ends it. `problem` continues "the server …". */
export async function tryServer(options: TrialOptions): Promise<Tried> {
  const library = await import('@modelcontextprotocol/client')
  const attempt = async (isModern: boolean): Promise<Tried> => {
    const session = await openSession({ ...options, library, isModern, listChanged() {}, doubt() {} })
    try {
      const tools = await Promise.race([session.tools(), session.ending])
      return Array.isArray(tools)
        ? { ok: true, tools }
        : { ok: false, problem: tools.why, detail: session.lastWords() }
    } catch (error) {
      const { text } = failureOf(error, library)
      return { ok: false, problem: `did not tell its tools: it ${text}`, detail: session.lastWords() }
    } finally {
      session.close({ why: 'was stopped', how: 'politely' })
      await session.over
    }
  }
  const failed = (error: unknown): Tried => ({
    ok: false,
    problem: error instanceof Error ? error.message : String(error),
    detail: error instanceof NotOpened ? error.detail : '',
  })
  try {
    return await attempt(false)
  } catch (error) {
    if (!(error instanceof NotOpened && error.isRefusal)) return failed(error)
  }
  return attempt(true).catch(failed)
}
