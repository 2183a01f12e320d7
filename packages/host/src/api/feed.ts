import { z } from 'zod'
import { changeKinds } from '../metrics/changes.ts'
import { commandAnswer } from './answers.ts'
import { eventStreamHeaders } from './chat-events.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { feedOf, type HostFeed, type NumberedEvent } from './host-feed.ts'
import { endOf, type Route } from './route.ts'

export const feedEventAnswer = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('hello'),
    complete: z.boolean().describe('whether nothing was missed; if not, everything is to be read again'),
  }),
  z
    .object({ kind: z.literal('command'), command: commandAnswer })
    .describe('was handled; comes a second time when its answer has followed'),
  z.object({
    kind: z.literal('run'),
    run_id: z.string(),
    group: z.string(),
    run_kind: z.enum(['chat', 'task']),
    state: z.enum(['working', 'idle', 'closing', 'ended']),
  }),
  z.object({ kind: z.literal('changed'), what: z.enum(changeKinds) }),
  z
    .object({
      kind: z.literal('traffic'),
      at: z.iso.datetime(),
      handled: z.int(),
      refused: z.int(),
    })
    .describe('in the second before; has no id'),
])
export type FeedEventAnswer = z.infer<typeof feedEventAnswer>

export const feedRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/feed',
    summary: 'What the host does, as server-sent events; `Last-Event-ID` or `after` goes on',
    tag: 'host',
    role: 'viewer',
    query: z.object({ after: z.string().max(64).optional() }),
    answer: feedEventAnswer,
    gives: 'text/event-stream',
    isStream: true,
    handle({ host, signal, heartbeatMs, eventBufferBytes }, { query, request, caller }) {
      const stream = feedStream(feedOf(host), {
        after: request.req.header('last-event-id') ?? query.after,
        heartbeatMs,
        bufferBytes: eventBufferBytes,
        signal: endOf(signal, caller),
      })
      return request.body(stream, 200, eventStreamHeaders)
    },
  }),
]

interface FeedStreamOptions {
  after: string | undefined
  heartbeatMs: number
  /** what a reader may be behind before it is sent away, to come back for what it missed */
  bufferBytes: number
  signal: AbortSignal
}

function feedStream(feed: HostFeed, options: FeedStreamOptions): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let end = () => {}
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let left = false
        const leave = () => {
          end()
          controller.close()
        }
        const write = (text: string) => {
          if (left) return
          controller.enqueue(encoder.encode(text))
          if ((controller.desiredSize ?? 0) <= 0) leave()
        }
        const send = (event: NumberedEvent | FeedEventAnswer) =>
          write('id' in event ? textOf(event.id, event.data()) : `data: ${JSON.stringify(event)}\n\n`)

        const unsubscribe = feed.subscribe(send)
        // Nothing happens between these two: what came before is among the missed, what comes after is sent.
        const missed = options.after === undefined ? undefined : feed.since(options.after)
        const first = missed && options.after !== undefined ? options.after : feed.position()
        const hello: FeedEventAnswer = {
          kind: 'hello',
          complete: options.after === undefined || missed !== undefined,
        }
        const heartbeat = setInterval(() => write(': still here\n\n'), options.heartbeatMs).unref()
        end = () => {
          left = true
          unsubscribe()
          clearInterval(heartbeat)
          options.signal.removeEventListener('abort', leave)
        }
        options.signal.addEventListener('abort', leave)
        write(`retry: 1000\n\n${textOf(first, JSON.stringify(hello))}`)
        for (const event of missed ?? []) send(event)
        if (options.signal.aborted && !left) leave()
      },
      cancel: () => end(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: options.bufferBytes }),
  )
}

const textOf = (id: string, data: string) => `id: ${id}\ndata: ${data}\n\n`
