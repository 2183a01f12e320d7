import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { ApiError, failureAnswer } from '../api/failure.ts'
import type { Method, Transport } from './transport.ts'

/** The daemon was there and is gone. `sent`: it may have done what it was asked to. */
export class DaemonGone extends Error {
  override name = 'DaemonGone'
  readonly sent: boolean

  constructor(sent: boolean, cause: unknown) {
    super(
      sent
        ? 'The daemon ended before it answered. Look at what it has done before you ask again.'
        : 'The daemon has ended.',
      { cause },
    )
    this.sent = sent
  }
}

/**
 * Not by `import`: that evaluates all that the module exports, and with it the whole of fetch and WebSocket, which is
 * 14 MB of memory for a daemon and 40 ms for every command.
 */
const { request } = process.getBuiltinModule('node:http')

const neverArrived = new Set(['ENOENT', 'ECONNREFUSED', 'ENOTSOCK'])

async function whole(response: IncomingMessage): Promise<{ status: number; text: string }> {
  response.setEncoding('utf8')
  let text = ''
  try {
    for await (const part of response) text += part
  } catch (error) {
    throw new DaemonGone(true, error)
  }
  return { status: response.statusCode ?? 0, text }
}

export function overSocket(socketPath: string): Transport {
  const send = (method: Method, path: string, body: unknown, signal?: AbortSignal) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const isFile = body instanceof Readable
      const outgoing = request({
        socketPath,
        method,
        path,
        host: 'localhost',
        agent: false,
        headers:
          body === undefined
            ? {}
            : { 'content-type': isFile ? 'application/octet-stream' : 'application/json' },
        ...(signal && { signal }),
      })
      outgoing.once('response', resolve)
      outgoing.on('error', error => {
        if (signal?.aborted) reject(error)
        else reject(new DaemonGone(!('code' in error && neverArrived.has(String(error.code))), error))
      })
      if (!isFile) return void outgoing.end(body === undefined ? undefined : JSON.stringify(body))
      body.once('error', error => outgoing.destroy(error))
      body.pipe(outgoing)
    })

  return {
    daemon: true,
    request: async (method, path, body) => whole(await send(method, path, body)),
    upload: async (path, content) => whole(await send('POST', path, content)),
    async download(path) {
      const response = await send('GET', path, undefined)
      if (response.statusCode === 200) return response
      throw new ApiError(failureAnswer.parse(JSON.parse((await whole(response)).text)).error)
    },
    async lines(path, onLine, signal) {
      try {
        const response = await send('GET', path, undefined, signal)
        if (response.statusCode !== 200) {
          throw new ApiError(failureAnswer.parse(JSON.parse((await whole(response)).text)).error)
        }
        for await (const line of createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })) {
          await onLine(line)
        }
      } catch (error) {
        if (!signal.aborted) throw error
      }
    },
    close: async () => {},
  }
}
