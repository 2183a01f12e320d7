import type { Context as Request } from 'hono'
import type { EventLog, Numbered } from '../base/event-log.ts'
import { type Caller, endOf } from './route.ts'

/** Answers that go on for as long as somebody reads them, and cost a bounded amount of memory each. */
export interface StreamOptions {
  heartbeatMs: number
  /** what a reader may be behind */
  bufferBytes: number
  /** ends the stream from our side */
  signal: AbortSignal
}

/** As the routes' contexts have them. */
export interface Limits {
  signal: AbortSignal
  heartbeatMs: number
  eventBufferBytes: number
}

interface Out {
  /** nothing more is sent once the stream has ended */
  write(text: string): void
  hasRoom(): boolean
  close(): void
}

interface Source {
  /** writes what comes first; whatever was heard meanwhile follows */
  begin(): void
  beat(): void
  end(): void
}

/** `open` subscribes, and writes nothing yet. */
export function liveStream(
  { heartbeatMs, bufferBytes, signal }: StreamOptions,
  open: (out: Out) => Source,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let end = () => {}
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let hasEnded = false
        const close = () => {
          if (hasEnded) return
          end()
          controller.close()
        }
        const source = open({
          write: text => void (hasEnded || controller.enqueue(encoder.encode(text))),
          hasRoom: () => (controller.desiredSize ?? 0) > 0,
          close,
        })
        const heartbeat = setInterval(source.beat, heartbeatMs).unref()
        end = () => {
          hasEnded = true
          source.end()
          clearInterval(heartbeat)
          signal.removeEventListener('abort', close)
        }
        signal.addEventListener('abort', close)
        source.begin()
        if (signal.aborted) close()
      },
      cancel: () => end(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: bufferBytes }),
  )
}

/**
 * A log as server-sent events: says hello first, and from then on misses nothing. A reader that does not keep up is
 * sent away, to come back for what it missed; where that is no longer known, the hello says that it is not complete.
 */
export function sentEvents<Event>(
  request: Request,
  caller: Caller,
  { after, signal, heartbeatMs, eventBufferBytes }: Limits & { after: string | undefined },
  events: {
    log: Pick<EventLog<Event>, 'since' | 'position' | 'subscribe'>
    hello(complete: boolean): object
    dataOf(event: Event): string
  },
): Response {
  const { log, hello, dataOf } = events
  const seen = request.req.header('last-event-id') ?? after
  const textOf = ({ id, event }: Numbered<Event>) => eventText(id, dataOf(event))
  const options = { heartbeatMs, bufferBytes: eventBufferBytes, signal: endOf(signal, caller) }
  const stream = liveStream(options, ({ write, hasRoom, close }) => {
    const send = (text: string) => {
      write(text)
      if (!hasRoom()) close()
    }
    return {
      begin() {
        const missed = seen === undefined ? [] : log.since(seen)
        const id = missed && seen !== undefined ? seen : log.position()
        send('retry: 1000\n\n')
        send(eventText(id, JSON.stringify(hello(missed !== undefined))))
        for (const numbered of missed ?? []) send(textOf(numbered))
      },
      beat: () => send(': still here\n\n'),
      end: log.subscribe(numbered => send(textOf(numbered))),
    }
  })
  return request.body(stream, 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
}

const eventText = (id: string | undefined, data: string) =>
  id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`
