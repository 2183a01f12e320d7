import type { Logger } from 'pino'
import { pause } from '../../base/pause.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { failureOf, Misconfigured, NotOpened } from './failure.ts'
import { openSession, type Session } from './session.ts'
import type { LentServer } from './settings.ts'
import type { Timing } from './timing.ts'

/**
 * Keeps one server up.
 *
 *   starting  its program runs or its address is asked, and it has not said yet who it is and what it can do
 *   up        calls go to it; left when it ends, breaks off, floods us, or gives no sign of life
 *   pausing   it could not be started or is gone; after a pause that grows from try to try it is started again
 *   off       not started yet, stopped, or the configuration lacks something
 *
 * Calls that come while it is not up wait a few seconds for it. What it could do last is kept meanwhile, so that agents
 * do not see tools come and go. The next program is started only when nothing of the last one is left.
 */
export interface ServerLifetime {
  start(log: Logger): void
  stop(): Promise<void>
  /** the server, waited for if it may come; refuses with why it is not there */
  reach(signal: AbortSignal): Promise<Session>
  /** nothing came back from it: is it still there? */
  doubt(session: Session): void
  /** for people; `text` continues with what else there is to say */
  state(): { ok: boolean; text: string }
}

export interface ServerLifetimeOptions {
  name: string
  settings: LentServer
  environment: NodeJS.ProcessEnv
  version: string
  /** the largest message */
  limitBytes: number
  timing: Timing
  /** these are its tools now */
  listed(tools: readonly unknown[]): void
  /** `state()` is another */
  changed(): void
}

type Phase =
  /** `why` continues "it …"; agents are told of it, of `detail` only people */
  { is: 'starting' | 'pausing' | 'off'; why: string; detail: string } | { is: 'up'; session: Session }

export function createServerLifetime(options: ServerLifetimeOptions): ServerLifetime {
  const { name, timing } = options
  const stopping = new AbortController()
  const waiting = new Set<() => void>()
  const doubted = new WeakSet<Session>()
  let phase: Phase = { is: 'off', why: 'has not been started', detail: '' }
  let running = Promise.resolve()

  const enter = (next: Phase) => {
    phase = next
    if (next.is === 'up' || next.is === 'off') for (const wake of [...waiting]) wake()
    options.changed()
  }
  const sessionNow = () => (phase.is === 'up' ? phase.session : undefined)

  const run = async (log: Logger) => {
    let failures = 0
    let isModern = false
    let last = { why: '', detail: '' }
    while (!stopping.signal.aborted) {
      enter({ is: 'starting', ...last })
      let upMs = 0
      try {
        const session = await open(log, isModern)
        log.info('the server is up')
        const startedAt = performance.now()
        const { why } = await session.ending
        upMs = performance.now() - startedAt
        last = { why, detail: session.lastWords() }
        enter({ is: 'pausing', ...last })
        await session.over
      } catch (error) {
        if (error instanceof Misconfigured) {
          log.error(error.detail)
          return enter({ is: 'off', why: error.message, detail: error.detail })
        }
        last = {
          why: error instanceof Error ? error.message : String(error),
          detail: error instanceof NotOpened ? error.detail : '',
        }
        isModern = !isModern && error instanceof NotOpened && error.isRefusal
        if (isModern) continue
      }
      if (stopping.signal.aborted) break
      if (upMs >= timing.steadyMs) failures = 0
      const pauseMs = timing.pauseMs(++failures)
      log.warn({ ...last, pauseMs }, 'the server is not up; it is started again after a pause')
      enter({ is: 'pausing', ...last })
      await pause(pauseMs, stopping.signal)
    }
    enter({ is: 'off', why: 'was stopped', detail: '' })
  }

  /** Until its tools are known, nothing goes to it. */
  const open = async (log: Logger, isModern: boolean): Promise<Session> => {
    const library = await import('@modelcontextprotocol/client')
    let own: Session | undefined
    let isOutdated = false
    const listAgain = settled(timing.settleMs, async () => {
      if (!own || sessionNow() !== own) return
      try {
        options.listed(await own.tools())
      } catch (error) {
        log.warn({ why: failureOf(error, library).text }, 'the tools could not be listed again')
        doubt(own)
      }
    })
    const session = await openSession({
      ...options,
      library,
      isModern,
      signal: stopping.signal,
      log,
      listChanged() {
        isOutdated = true
        if (own && sessionNow() === own) listAgain()
      },
      // A program that writes nonsense is there all the same; an address may not be.
      doubt: () => own && options.settings.url !== undefined && doubt(own),
    })
    own = session
    const stop = () => session.close({ why: 'was stopped', how: 'politely' })
    const forget = () => stopping.signal.removeEventListener('abort', stop)
    stopping.signal.addEventListener('abort', stop)
    void session.over.then(forget, forget)
    if (stopping.signal.aborted) stop()
    try {
      const tools = await Promise.race([session.tools(), session.ending])
      if (!Array.isArray(tools)) throw new NotOpened(tools.why, session.lastWords())
      options.listed(tools)
    } catch (error) {
      session.close({ why: 'did not tell its tools', how: 'politely' })
      await session.over
      if (error instanceof NotOpened) throw error
      const { text } = failureOf(error, library)
      throw new NotOpened(`did not tell its tools: it ${text}`, session.lastWords())
    }
    enter({ is: 'up', session })
    // It changed them while they were being listed.
    if (isOutdated) listAgain()
    return session
  }

  const doubt = (session: Session) => {
    if (doubted.has(session) || sessionNow() !== session) return
    doubted.add(session)
    void session.signOfLife().then(ending => {
      doubted.delete(session)
      if (ending) session.close(ending)
    })
  }

  const reasonOf = () => (phase.is === 'up' || phase.why === '' ? 'is being started' : phase.why)

  return {
    start(log) {
      running = run(log).catch(error => {
        log.error({ err: error }, 'the server is not looked after any longer')
        enter({ is: 'off', why: 'is not looked after any longer', detail: '' })
      })
    },
    async stop() {
      stopping.abort()
      await running
    },
    async reach(signal) {
      if (phase.is !== 'up' && phase.is !== 'off') await arrival(waiting, timing.waitMs, signal)
      const session = sessionNow()
      if (!session)
        throw new ServiceRefusal('service_failed', `The server ${name} is not there: it ${reasonOf()}.`)
      return session
    },
    doubt,
    state() {
      if (phase.is === 'up') return { ok: true, text: 'It is up.' }
      return {
        ok: false,
        text: [`It ${reasonOf()}.`, phase.detail].filter(text => text !== '').join('\n'),
      }
    },
  }
}

/** Waits until somebody wakes us, but not for ever. */
function arrival(waiting: Set<() => void>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const wake = () => {
      clearTimeout(timer)
      waiting.delete(wake)
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    waiting.add(wake)
    signal.addEventListener('abort', wake)
    if (signal.aborted) wake()
  })
}

/** Some time after the first word, once for all words until then: one that never stops talking is heard all the same. */
function settled(ms: number, action: () => Promise<void>): () => void {
  let isDue = false
  let acting = Promise.resolve()
  return () => {
    if (isDue) return
    isDue = true
    setTimeout(() => {
      acting = acting.then(() => {
        isDue = false
        return action()
      })
    }, ms).unref()
  }
}
