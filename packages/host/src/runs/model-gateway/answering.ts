import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'
import type { Body } from './body.ts'
import type { ModelProblem } from './health.ts'
import { type ApiTrack, createOutcome } from './outcome.ts'
import { failing, noCredit, rateLimited, refuse, unreachable } from './refusals.ts'
import { createKeyFilter, headersOfAnswer, type ModelRequest, type Refusal } from './request.ts'
import { createUpstream, unusable } from './upstream.ts'
import { bytesPerToken, type ModelUsage, modelName, readUsage, type UsageReader } from './usage.ts'

interface AnsweringOptions {
  url: string
  key: string
  silenceMs: number
  unheardMs: number
  /** the pauses before it is asked again; their number is how often */
  retryMs: readonly number[]
  onUsage(usage: ModelUsage): void
  listen?: SentTexts['listen'] | undefined
  track: ApiTrack
  log?: Logger
}

/**
 * Asks the model and passes its answer on. Resolves when nothing of the request is under way any more.
 *
 *   asking     a connection of its own, the request, the head of the answer
 *              → passing    the head of an answer for the agent
 *              → waiting    not reached, too busy, or failed by itself; and it may be asked again
 *              → refused    the same, once too often; what comes back does not look like the API's answer
 *   waiting    → asking     after a pause; people have been told
 *   passing    until the answer has ended, or the agent has hung up and its cost is known
 *
 * The agent's own client would try again, too, and tell nobody. So we do, a few times, and it is refused in a way after
 * which no client tries again.
 */
export function createAnswering(
  options: AnsweringOptions,
): (response: ServerResponse, wanted: ModelRequest, body: Body) => Promise<void> {
  const exchange = createExchange(options)
  const { track, log, retryMs } = options

  return async (response, wanted, body) => {
    try {
      for (let attempt = 0; !response.destroyed; attempt++) {
        const failure = await exchange(response, wanted, body)
        if (!failure || response.destroyed) return
        const { problem, refusal, reason } = failure
        const usualMs = failure.mayRetry ? retryMs[attempt] : undefined
        const waitMs = Math.max(usualMs ?? 0, failure.waitMs ?? 0)
        const isRetried = usualMs !== undefined && waitMs <= longestWaitMs
        log?.warn({ reason, attempt: attempt + 1, isRetried }, 'a request to the model API failed')
        // Something of the API's own may be over in a second: people hear of what lasts longer.
        if (problem.cause === 'unreachable' || attempt > 0 || !isRetried)
          track.note({ ...problem, ...(isRetried && { isRetried }) })
        if (!isRetried) return refuse(response, refusal)
        await pause(waitMs, response)
      }
    } finally {
      body.release()
    }
  }
}

/** What a busy API may have us wait for; beyond that the agent is told at once. */
const longestWaitMs = 20_000

const pause = (ms: number, response: ServerResponse) =>
  new Promise<void>(resolve => {
    const end = () => {
      clearTimeout(timer)
      response.off('close', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    response.once('close', end)
  })

interface Failure {
  problem: ModelProblem
  refusal: Refusal
  /** for the log */
  reason: string
  mayRetry: boolean
  /** how long the API wants to be left alone */
  waitMs?: number | undefined
}

const notReached = (reason: string, mayRetry: boolean, code?: string): Failure => ({
  problem: { cause: 'unreachable', ...(code !== undefined && { code }) },
  refusal: unreachable,
  reason,
  mayRetry,
})

/** Of an error of Node's: ENOTFOUND and the like. */
const codeOf = (error: Error): string | undefined =>
  'code' in error && typeof error.code === 'string' && /^[A-Z][A-Z0-9_]{2,39}$/.test(error.code)
    ? error.code
    : undefined

const busyStatuses = new Set([429, 500, 502, 503, 504, 529])

/** One attempt. Resolves with why there is nothing for the agent yet, or, at the end of the answer, with undefined. */
function createExchange(options: AnsweringOptions) {
  const { log } = options
  const ask = createUpstream(options.url, options.silenceMs)

  const count = (usage: ModelUsage) => {
    try {
      options.onUsage(usage)
    } catch (error) {
      // Thrown out of a stream's event it would end the host.
      log?.error({ err: error }, 'the usage of a model could not be stored')
    }
  }

  return (response: ServerResponse, wanted: ModelRequest, body: Body) =>
    new Promise<Failure | undefined>(resolve => {
      const asked = ask(wanted, body.bytes)
      const about = {
        begun: performance.now(),
        bytes: body.bytes.length,
        model: modelIn(wanted.path) ?? body.model,
      }
      let isGivenUp = false
      let usage: UsageReader | undefined
      let unheard: NodeJS.Timeout | undefined

      /** A stream is ended as soon as its cost is known; what is no stream the model makes to its end anyway. */
      const endUnheard = () => {
        if (usage?.mayStop()) asked.destroy()
      }
      const fail = (failure: Failure) => {
        asked.destroy()
        // A stream that broke off must not look complete to the agent.
        if (response.headersSent) response.destroy()
        resolve(failure)
      }
      /** The API may go on, and wants to be paid. */
      const giveUp = () => {
        isGivenUp = asked.writableFinished && wanted.content !== undefined && !counting.test(wanted.path)
        asked.destroy()
      }
      const onGone = () => {
        if (response.writableFinished) return
        unheard = setTimeout(giveUp, options.unheardMs)
        // Neither it nor its answer keeps a host from ending.
        unheard.unref()
        asked.socket?.unref()
        endUnheard()
      }
      response.on('close', onGone)
      asked.on('timeout', () => {
        giveUp()
        fail(notReached('the model did not answer in time', false))
      })
      asked.on('error', error => fail(notReached(error.message, true, codeOf(error))))
      asked.on('close', () => {
        clearTimeout(unheard)
        response.off('close', onGone)
        const told = usage?.result()
        if (isGivenUp) count(atLeast(told, about))
        else if (told) count(told)
        resolve(undefined)
      })
      asked.on('response', incoming => {
        incoming.on('error', error => fail(notReached(error.message, false, codeOf(error))))
        const problem = unusable(incoming)
        if (problem !== undefined) return fail(notReached(problem, false))
        if (busyStatuses.has(incoming.statusCode ?? 0))
          return void busyFailure(wanted.path, incoming).then(failure => failure && fail(failure))
        body.release()
        usage = readUsage(incoming.headers['content-type'] ?? '')
        passOn(options, { incoming, response, wanted, usage, endUnheard })
      })
    })
}

/** what costs nothing */
const counting = /(\/count_tokens|:countTokens)(\?|$)/
const modelIn = (path: string): string | undefined => /\/models\/([^/:]+):/.exec(path)?.[1]

/**
 * Of a request that we gave up before the API had said what it costs. Roughly, but not nothing: a sandbox could hang up each
 * time, and no limit would ever be reached.
 */
function atLeast(
  told: ModelUsage | undefined,
  { begun, bytes, model }: { begun: number; bytes: number; model: string },
): ModelUsage {
  const seconds = (performance.now() - begun) / 1000
  return {
    model: told?.model || modelName(model),
    inputTokens: told?.inputTokens || Math.ceil(bytes / bytesPerToken),
    outputTokens: told?.outputTokens || Math.ceil(seconds * tokensPerSecond),
    cachedTokens: told?.cachedTokens ?? 0,
  }
}
/** of a usual model */
const tokensPerSecond = 50

/** What the API says while it does not serve us; undefined: it broke off, which is an error of its own. */
async function busyFailure(path: string, incoming: IncomingMessage): Promise<Failure | undefined> {
  const status = incoming.statusCode ?? 502
  const outcome = createOutcome(path, status)
  try {
    for await (const chunk of incoming) outcome.push(chunk)
  } catch (error) {
    if (error instanceof Error) return undefined
    throw error
  }
  const problem = outcome.problem() ?? { cause: 'failing' }
  const refusal = { rate_limited: rateLimited, no_credit: noCredit }[String(problem.cause)] ?? failing
  return {
    problem,
    refusal,
    reason: `it answered with ${status}`,
    mayRetry: problem.cause !== 'no_credit',
    waitMs: waitOf(incoming.headers),
  }
}

function waitOf({ 'retry-after-ms': ms, 'retry-after': seconds }: IncomingHttpHeaders): number | undefined {
  if (typeof ms === 'string' && /^\d{1,9}$/.test(ms)) return Number(ms)
  return seconds !== undefined && /^\d{1,6}$/.test(seconds) ? 1000 * Number(seconds) : undefined
}

/** Hands the answer to the agent as it comes, without the key, and reads along. */
function passOn(
  { key, listen, track }: AnsweringOptions,
  exchange: {
    incoming: IncomingMessage
    response: ServerResponse
    wanted: ModelRequest
    usage: UsageReader
    /** the agent has hung up */
    endUnheard(): void
  },
): void {
  const { incoming, response, usage } = exchange
  const status = incoming.statusCode ?? 502
  const listener = listen?.(incoming.headers['content-type'] ?? '')
  const filter = createKeyFilter(key)
  const outcome = createOutcome(exchange.wanted.path, status)
  if (!response.destroyed) {
    response.writeHead(status, { ...headersOfAnswer(incoming.headers, key), connection: 'close' })
    // Some clients wait for the headers of a stream before its first event.
    response.flushHeaders()
  }
  incoming.on('data', (chunk: Buffer) => {
    usage.push(chunk)
    listener?.push(chunk)
    outcome.push(chunk)
    if (response.destroyed) exchange.endUnheard()
    else if (!response.write(filter.push(chunk))) incoming.pause()
  })
  response.on('drain', () => incoming.resume())
  response.on('close', () => incoming.resume())
  incoming.on('end', () => {
    listener?.end()
    track.note(outcome.problem())
    response.end(filter.end())
  })
}
