import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { join } from 'node:path'
import { type Owner, openDirectory } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'
import { createAnswering } from './answering.ts'
import { type Body, createBodyReader, headerBytes } from './body.ts'
import { createContentCheck } from './content-check.ts'
import type { ModelProblem } from './health.ts'
import { trackApi } from './outcome.ts'
import { expectation, keyRefused, limitReached, oldVersion, refuse, tooMany } from './refusals.ts'
import { invalid, type Manner, type ModelRequest, requestFor } from './request.ts'
import type { ModelUsage } from './usage.ts'

/**
 * The model through the hatch. A run without a network talks to this socket; we talk to the model API with the host's
 * key, which no sandbox ever sees.
 *
 * Nothing is passed through. One request goes through these steps:
 *
 *   checked    method, path and headers are held against the rules in request.ts
 *   read       its body is read to the end into our memory, within the limits of this run
 *   written    the body is parsed, held against the rules in content.ts, and written anew
 *   asked      a new request is made of it, with a length of our own, on a connection that nobody else uses; again, a few
 *              times, while the API cannot be reached or is too busy
 *   answered   status and named headers go back, and the body as it comes, without the key
 *
 * A connection carries one request. If the agent hangs up while it is read, nothing is asked. If it hangs up later, the
 * answer is read until it has said what is paid for, and is then ended.
 */
export interface ModelSocketOptions {
  /** made for this run alone, and removed with it */
  directory: string
  /** whose runs connect; undefined: our own user's */
  owner: Owner | undefined
  url: string
  key: string
  /** by which APIs, and how the key is shown; left out: any, and as the agent does */
  manner?: Manner
  /** before each request: why it may not be made, in the host's words */
  mayAsk?(): ModelProblem | undefined
  /** after every answered request, also one that cost nothing */
  onUsage(usage: ModelUsage): void
  /** hears every answer before the agent does */
  listen?: SentTexts['listen'] | undefined
  /** after every request: what kept it from being answered, or undefined */
  onOutcome?(problem: ModelProblem | undefined): void
  log?: Logger
  limits?: Partial<ModelSocketLimits>
}

interface ModelSocketLimits {
  requestBytes: number
  /** of all requests of this run together, until their answers begin */
  heldBytes: number
  atOnce: number
  /** without a byte from the model */
  silenceMs: number
  /** how long an answer is read that nobody waits for */
  unheardMs: number
  /** the pauses before an API that was not reached or busy is asked again */
  retryMs: readonly number[]
}

export interface ModelSocket {
  /** to be mounted read-only at /run/hatchway */
  directory: string
  close(): Promise<void>
}

const usualLimits: ModelSocketLimits = {
  requestBytes: 33_554_432,
  heldBytes: 67_108_864,
  atOnce: 16,
  silenceMs: 600_000,
  unheardMs: 120_000,
  retryMs: [1000, 3000],
}

export async function serveModel(options: ModelSocketOptions): Promise<ModelSocket> {
  const { directory, owner, key, log } = options
  const limits = { ...usualLimits, ...options.limits }
  const readBody = createBodyReader(limits)
  const track = trackApi(options.onOutcome)
  const answer = createAnswering({ ...options, ...limits, track })
  const contents = createContentCheck()
  let underWay = 0

  const answerChecked = async (response: ServerResponse, wanted: ModelRequest, body: Body) => {
    if (wanted.content !== undefined) {
      const checked = await contents.check(body.bytes, wanted.content)
      if ('problem' in checked) {
        body.release()
        log?.warn({ reason: checked.problem }, 'a request to the model was refused')
        return refuse(response, invalid(checked.problem))
      }
      body.model = checked.model
      body.bytes = Buffer.from(checked.bytes.buffer, checked.bytes.byteOffset, checked.bytes.length)
    }
    // Otherwise the agent has gone before it had asked for anything.
    if (response.destroyed) body.release()
    else await answer(response, wanted, body)
  }

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.httpVersion !== '1.1') return refuse(response, oldVersion)
    const wanted = requestFor(request.method, request.url ?? '', request.headers, key, options.manner)
    if ('status' in wanted) return refuse(response, wanted)
    // For the rest of the run it stays so. Agents try again after 401, and not after this.
    if (track.isKeyRefused()) return refuse(response, keyRefused)
    const reached = wanted.content && options.mayAsk?.()
    if (reached) {
      track.note(reached)
      return refuse(response, limitReached)
    }
    if (underWay >= limits.atOnce) return refuse(response, tooMany)
    underWay++
    try {
      const body = await readBody(request)
      if ('status' in body) refuse(response, body)
      else await answerChecked(response, wanted, body)
    } finally {
      underWay--
    }
  }
  const server = createStrictServer((request, response) => {
    serve(request, response).catch(error => {
      log?.error({ err: error }, 'a request to the model could not be served')
      response.destroy()
    })
  })
  server.maxConnections = 4 * limits.atOnce

  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true, mode: 0o755 })
  const release = await listen(server, directory, owner)
  const close = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
    await contents.close()
    release()
    rmSync(directory, { recursive: true, force: true })
  }
  let closing: Promise<void> | undefined
  return {
    directory,
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** One request per connection, of HTTP/1.1 as it is written, and nothing but requests. */
function createStrictServer(onRequest: RequestListener): Server {
  const server = createServer(
    {
      insecureHTTPParser: false,
      maxHeaderSize: headerBytes,
      headersTimeout: 20_000,
      requestTimeout: 120_000,
      connectionsCheckingInterval: 5000,
    },
    onRequest,
  )
  // What follows on the same connection is nobody's request: Node answers it with 503.
  server.maxRequestsPerSocket = 1
  // Without listeners Node would take CONNECT and upgrades as far as it can; with these they end at once.
  server.on('connect', (_request, socket) => socket.destroy())
  server.on('upgrade', (_request, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
  // Clients that ask first try again without asking.
  server.on('checkContinue', (_request, response) => refuse(response, expectation))
  server.on('checkExpectation', (_request, response) => refuse(response, expectation))
  return server
}

/**
 * Through the directory's handle: the kernel's field for a socket's path is shorter than many a data directory. The
 * handle stays open for as long as the server does, which removes the socket by the same path.
 */
async function listen(server: Server, directory: string, owner: Owner | undefined): Promise<() => void> {
  const handle = openDirectory(directory)
  if (typeof handle === 'string') throw new Error(`${directory} cannot be opened: ${handle}`)
  try {
    const path = join(handle.path, 'model.sock')
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
    chmodSync(path, 0o600)
    if (owner) chownSync(path, owner.uid, owner.gid)
    return handle.close
  } catch (error) {
    handle.close()
    throw error
  }
}
