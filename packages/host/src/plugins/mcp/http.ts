import type * as Library from '@modelcontextprotocol/client'
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { answeredTooLarge, brokenOff, TooLarge } from './failure.ts'
import { cutLines, requestOf } from './lines.ts'

export interface HttpOptions {
  url: string
  headers: Record<string, string>
  limitBytes: number
  /** an answer that is too large, of which nobody can say what it answers */
  flooded(): void
}

/**
 * What the client library speaks through to an address. It follows a redirect only within the same origin, so the
 * headers go nowhere else. Two things are added: no answer is read beyond the limit, and a call whose stream breaks off
 * for good is told so; the library would let it wait for its time-out.
 */
export function httpTransport(library: typeof Library, options: HttpOptions): StreamableHTTPClientTransport {
  const transport = new library.StreamableHTTPClientTransport(new URL(options.url), {
    requestInit: { headers: options.headers },
    fetch: async (url, init) => bounded(await fetch(url, init), options),
  })
  const waiting = new Set<number | string>()
  transport.onmessage = message => {
    if ('id' in message && message.id !== undefined && !('method' in message)) waiting.delete(message.id)
  }
  const send = transport.send.bind(transport)
  transport.send = (message, sending) => {
    if (Array.isArray(message) || !('method' in message) || !('id' in message)) return send(message, sending)
    const { id } = message
    waiting.add(id)
    const sent = send(message, {
      ...sending,
      onRequestStreamEnd() {
        sending?.onRequestStreamEnd?.()
        if (waiting.delete(id)) transport.onmessage?.(brokenOff(id))
      },
    })
    sent.catch(() => waiting.delete(id))
    return sent
  }
  return transport
}

const withoutBody = new Set([101, 204, 205, 304])

function bounded(response: Response, options: HttpOptions): Response {
  if (!response.body || withoutBody.has(response.status)) return response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const limit = isStream ? eventLimit(options) : sizeLimit(options.limitBytes)
  return new Response(response.body.pipeThrough(limit), {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  })
}

function sizeLimit(limitBytes: number) {
  let size = 0
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.length
      if (size > limitBytes) throw new TooLarge('the answer is too large')
      controller.enqueue(chunk)
    },
  })
}

const lineBreak = Buffer.from('\n')

/** Events go through line by line. In the place of one that is too large stands an error for the call it answers. */
function eventLimit({ limitBytes, flooded }: HttpOptions) {
  let eventBytes = 0
  let problem: TooLarge | undefined
  let pass: (line: Buffer) => void = () => {}
  const giveUp = () => {
    problem = new TooLarge('an answer is too large')
    flooded()
  }
  const cut = cutLines(limitBytes, {
    line(line) {
      const isEnd = line.length === 0 || (line.length === 1 && line[0] === 13)
      eventBytes = isEnd ? 0 : eventBytes + line.length
      if (eventBytes > limitBytes) return giveUp()
      pass(line)
    },
    tooLong({ head, tail }) {
      const id = requestOf({ head: head.replace(/^data: ?/, ''), tail })
      if (id === undefined) return giveUp()
      pass(Buffer.from(`data: ${JSON.stringify(answeredTooLarge(id))}`))
    },
    endless: giveUp,
  })
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      pass = line => controller.enqueue(Buffer.concat([line, lineBreak]))
      cut(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
      if (problem) throw problem
    },
  })
}
