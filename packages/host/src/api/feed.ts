import { z } from 'zod'
import { changeKinds } from '../base/metrics/changes.ts'
import { commandAnswer } from './answers.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { feedOf, type HostFeed, type NumberedEvent } from './host-feed.ts'
import { endOf, type Route } from './route.ts'
import { eventStreamHeaders, eventText, resumed, type StreamOptions, sentEvents } from './sent-events.ts'

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
    state: z.enum(['working', 'idle', 'stopping', 'closing', 'ended']),
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

const feedStream = (feed: HostFeed, options: StreamOptions): ReadableStream<Uint8Array> =>
  sentEvents(options, write => {
    const end = feed.subscribe(event => write(textOf(event)))
    // Nothing happens between these two: what came before is among the missed, what comes after is sent.
    const { id, complete, missed } = resumed(feed, options.after)
    const hello: FeedEventAnswer = { kind: 'hello', complete }
    return { first: [eventText(id, JSON.stringify(hello)), ...missed.map(textOf)], end }
  })

const textOf = (event: NumberedEvent | FeedEventAnswer): string =>
  'id' in event ? eventText(event.id, event.data()) : `data: ${JSON.stringify(event)}\n\n`
