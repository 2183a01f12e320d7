import { commandOf, type EventAnswer } from './answers.ts'
import type { Host } from './host.ts'

export interface EventStreamOptions {
  group?: string | undefined
  heartbeatMs: number
  /** what a reader may be behind before commands are left out for it */
  bufferBytes: number
  /** ends the stream from our side */
  signal: AbortSignal
}

/**
 * Commands as they become durable, one JSON object per line. The first line is a heartbeat: from then on nothing is
 * missed. A reader that does not keep up costs at most `bufferBytes`; what it misses is counted and said (promise 7).
 */
export function eventStream(
  host: Pick<Host, 'subscribe'>,
  options: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let dropped = 0
  let end = () => {}

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send = (event: EventAnswer) => controller.enqueue(encoder.encode(`${JSON.stringify(event)}\n`))
        const hasRoom = () => (controller.desiredSize ?? 0) > 0
        const owning = () => {
          if (dropped > 0 && hasRoom()) {
            send({ kind: 'dropped', count: dropped })
            dropped = 0
          }
        }
        const unsubscribe = host.subscribe(event => {
          if (options.group !== undefined && event.group !== options.group) return
          owning()
          if (dropped === 0 && hasRoom()) send({ kind: 'command', command: commandOf(event) })
          else dropped++
        })
        const beat = () => {
          owning()
          if (hasRoom()) send({ kind: 'heartbeat', at: new Date().toISOString() })
        }
        beat()
        const heartbeat = setInterval(beat, options.heartbeatMs).unref()

        const close = () => {
          end()
          controller.close()
        }
        end = () => {
          unsubscribe()
          clearInterval(heartbeat)
          options.signal.removeEventListener('abort', close)
        }
        options.signal.addEventListener('abort', close)
        if (options.signal.aborted) close()
      },
      cancel: () => end(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: options.bufferBytes }),
  )
}
