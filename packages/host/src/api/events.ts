import { command, type EventAnswer } from './answers.ts'
import type { Host } from './host.ts'
import { liveStream, type StreamOptions } from './live-stream.ts'

/**
 * Commands as they become durable, one JSON object per line. The first line is a heartbeat: from then on nothing is
 * missed. A reader that does not keep up costs at most `bufferBytes`; what it misses is counted and said (promise 7).
 */
export const eventStream = (
  host: Pick<Host, 'subscribe'>,
  { group, ...options }: StreamOptions & { group?: string | undefined },
): ReadableStream<Uint8Array> =>
  liveStream(options, ({ write, hasRoom }) => {
    let dropped = 0
    const send = (event: EventAnswer) => write(`${JSON.stringify(event)}\n`)
    const sendDropped = () => {
      if (dropped === 0 || !hasRoom()) return
      send({ kind: 'dropped', count: dropped })
      dropped = 0
    }
    const beat = () => {
      sendDropped()
      if (hasRoom()) send({ kind: 'heartbeat', at: new Date().toISOString() })
    }
    const end = host.subscribe(event => {
      if (group !== undefined && event.group !== group) return
      sendDropped()
      if (dropped === 0 && hasRoom()) send({ kind: 'command', command: command.of(event) })
      else dropped++
    })
    return { begin: beat, beat, end }
  })
