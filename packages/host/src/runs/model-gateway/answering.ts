import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'
import type { Body } from './body.ts'
import { type ApiTrack, createOutcome } from './outcome.ts'
import { final, refuse, unreachable } from './refusals.ts'
import { createKeyFilter, headersOfAnswer, type ModelRequest } from './request.ts'
import { createUpstream, unusable } from './upstream.ts'
import { type ModelUsage, readUsage, type UsageReader } from './usage.ts'

interface AnsweringOptions {
  url: string
  key: string
  silenceMs: number
  unheardMs: number
  onUsage(usage: ModelUsage): void
  listen?: SentTexts['listen'] | undefined
  track: ApiTrack
  log?: Logger
}

/** Asks the model and passes its answer on. Resolves when nothing of the request is under way any more. */
export function createAnswering(
  options: AnsweringOptions,
): (response: ServerResponse, wanted: ModelRequest, body: Body) => Promise<void> {
  const { track, log } = options
  const ask = createUpstream(options.url, options.silenceMs)

  const count = (usage: ModelUsage) => {
    try {
      options.onUsage(usage)
    } catch (error) {
      // Thrown out of a stream's event it would end the host.
      log?.error({ err: error }, 'the usage of a model could not be stored')
    }
  }

  return (response, wanted, body) =>
    new Promise<void>(resolve => {
      const asked = ask(wanted, body.bytes)
      let usage: UsageReader | undefined
      let unheard: NodeJS.Timeout | undefined

      /** A stream is ended as soon as its cost is known; what is no stream the model makes to its end anyway. */
      const endUnheard = () => {
        if (usage?.mayStop()) asked.destroy()
      }
      const fail = (reason: string) => {
        asked.destroy()
        if (response.destroyed) return
        log?.warn({ reason }, 'a request to the model API failed')
        // A stream that broke off must not look complete to the agent.
        if (response.headersSent) return response.destroy()
        track.note({ cause: 'unreachable' })
        refuse(response, track.isHopeless() ? { ...unreachable, ...final } : unreachable)
      }
      response.on('close', () => {
        if (response.writableFinished) return
        unheard = setTimeout(() => asked.destroy(), options.unheardMs)
        // Neither it nor its answer keeps a host from ending.
        unheard.unref()
        asked.socket?.unref()
        endUnheard()
      })
      asked.on('finish', body.release)
      asked.on('timeout', () => fail('the model did not answer in time'))
      asked.on('error', error => fail(error.message))
      asked.on('close', () => {
        clearTimeout(unheard)
        body.release()
        if (usage) count(usage.result())
        resolve()
      })
      asked.on('response', incoming => {
        incoming.on('error', error => fail(error.message))
        const problem = unusable(incoming)
        if (problem !== undefined) return fail(problem)
        usage = readUsage(incoming.headers['content-type'] ?? '')
        passOn(options, { incoming, response, wanted, usage, endUnheard })
      })
    })
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
