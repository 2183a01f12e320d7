import type { Chats } from '../channels/chats.ts'
import type { ChatEvent, Numbered } from '../channels/feed.ts'
import { type ChatEventAnswer, entryOf } from './chat-answers.ts'

export interface ChatEventsOptions {
  /** the last event the reader has seen */
  after: string | undefined
  heartbeatMs: number
  /** what a reader may be behind before it is sent away, to come back for what it missed */
  bufferBytes: number
  signal: AbortSignal
}

export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

/**
 * The chats as server-sent events. The first says hello: from then on nothing is missed. A reader that comes back with
 * the id of its last event gets what came since; where that is not known any more the hello says so.
 */
export function chatEventStream(
  { feed, web }: Pick<Chats, 'feed' | 'web'>,
  options: ChatEventsOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let end = () => {}

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const leave = () => {
          end()
          controller.close()
        }
        const write = (text: string) => {
          controller.enqueue(encoder.encode(text))
          if ((controller.desiredSize ?? 0) <= 0) leave()
        }
        const send = ({ id, event }: { id: string; event: ChatEventAnswer }) =>
          write(`id: ${id}\ndata: ${JSON.stringify(event)}\n\n`)

        const missed = options.after === undefined ? undefined : feed.since(options.after)
        const first = missed && options.after !== undefined ? options.after : feed.position()
        const complete = options.after === undefined || missed !== undefined
        const hello: ChatEventAnswer = { kind: 'hello', complete, typing: [...web.typingIn()] }
        const waiting = [{ id: first, event: hello }, ...(missed ?? []).map(answerOf)]
        let left = false
        const unsubscribe = feed.subscribe(numbered => send(answerOf(numbered)))
        const heartbeat = setInterval(() => write(': still here\n\n'), options.heartbeatMs).unref()
        end = () => {
          left = true
          unsubscribe()
          clearInterval(heartbeat)
          options.signal.removeEventListener('abort', leave)
        }
        options.signal.addEventListener('abort', leave)
        write('retry: 1000\n\n')
        for (const event of waiting) if (!left) send(event)
        if (options.signal.aborted && !left) leave()
      },
      cancel: () => end(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: options.bufferBytes }),
  )
}

const answerOf = ({ id, event }: Numbered): { id: string; event: ChatEventAnswer } => ({
  id,
  event: publicOf(event),
})

const publicOf = (event: ChatEvent): ChatEventAnswer =>
  event.kind === 'entry' ? { kind: 'entry', entry: entryOf(event.entry) } : event
