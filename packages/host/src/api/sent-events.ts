/** Server-sent events: a stream that says hello first, and from then on misses nothing. */
export interface StreamOptions {
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

export const eventText = (id: string, data: string) => `id: ${id}\ndata: ${data}\n\n`

/** Where a reader goes on: what it missed, or, where that is not known any more, that it has to read anew. */
export function resumed<Event>(
  feed: { since(id: string): readonly Event[] | undefined; position(): string },
  after: string | undefined,
): { id: string; complete: boolean; missed: readonly Event[] } {
  if (after === undefined) return { id: feed.position(), complete: true, missed: [] }
  const missed = feed.since(after)
  return missed ? { id: after, complete: true, missed } : { id: feed.position(), complete: false, missed: [] }
}

/** `open` subscribes, and tells what comes before anything it hears from then on. */
export function sentEvents(
  { heartbeatMs, bufferBytes, signal }: StreamOptions,
  open: (write: (text: string) => void) => { first: Iterable<string>; end(): void },
): ReadableStream<Uint8Array> {
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
        const opened = open(write)
        const heartbeat = setInterval(() => write(': still here\n\n'), heartbeatMs).unref()
        end = () => {
          left = true
          opened.end()
          clearInterval(heartbeat)
          signal.removeEventListener('abort', leave)
        }
        signal.addEventListener('abort', leave)
        write('retry: 1000\n\n')
        for (const text of opened.first) write(text)
        if (signal.aborted && !left) leave()
      },
      cancel: () => end(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: bufferBytes }),
  )
}
