import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
  type ServerResponse,
} from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { join } from 'node:path'
import { type Owner, openDirectory } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'
import type { ModelProblem } from './health.ts'
import { createKeyFilter, headersOfAnswer, type ModelRequest, type Refusal, requestFor } from './request.ts'
import { type ModelUsage, readUsage, type UsageReader } from './usage.ts'

/**
 * The model through the hatch. A run without a network talks to this socket; we talk to the model API with the host's
 * key, which no sandbox ever sees.
 *
 * Nothing is passed through. One request goes through these steps:
 *
 *   checked    method, path and headers are held against the rules in model-request.ts
 *   read       its body is read to the end into our memory, within the limits of this run
 *   asked      a new request is made of it, with a length of our own, on a connection that nobody else uses
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
  /** of all requests of this run together, until they are sent */
  heldBytes: number
  atOnce: number
  /** without a byte from the model */
  silenceMs: number
  /** how long an answer is read that nobody waits for */
  unheardMs: number
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
}

const headerBytes = 32_768
/** A body in pieces may cost half as much again on the wire, and a little more at the beginning. */
const wireBytes = (bodyBytes: number) => 2 * headerBytes + 1.5 * bodyBytes

export async function serveModel(options: ModelSocketOptions): Promise<ModelSocket> {
  const { directory, owner, key, log } = options
  const limits = { ...usualLimits, ...options.limits }
  const ask = createUpstream(options.url, limits.silenceMs)
  const readBody = createBodyReader(limits)
  let underWay = 0
  /** requests in a row that the API was not reached by, or failed at */
  let failures = 0
  let isKeyRefused = false

  const count = (usage: ModelUsage) => {
    try {
      options.onUsage(usage)
    } catch (error) {
      // Thrown out of a stream's event it would end the host.
      log?.error({ err: error }, 'the usage of a model could not be stored')
    }
  }

  const note = (problem: ModelProblem | undefined) => {
    if (problem?.cause === 'key_refused') isKeyRefused = true
    failures = problem?.cause === 'unreachable' || problem?.cause === 'failing' ? failures + 1 : 0
    // One failure of the API's own is nothing yet: the agent tries again.
    if (problem?.cause !== 'failing' || failures >= mostFailures) options.onOutcome?.(problem)
  }

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.httpVersion !== '1.1') return refuse(response, oldVersion)
    const wanted = requestFor(request.method, request.url ?? '', request.headers, key)
    if ('status' in wanted) return refuse(response, wanted)
    // For the rest of the run it stays so. Agents try again after 401, and not after this.
    if (isKeyRefused) return refuse(response, keyRefused)
    if (underWay >= limits.atOnce) return refuse(response, tooMany)
    underWay++
    try {
      const body = await readBody(request)
      if ('status' in body) refuse(response, body)
      // Otherwise the agent has gone before it had asked for anything.
      else if (!response.destroyed) await answer(response, wanted, body)
    } finally {
      underWay--
    }
  }

  /** Resolves when nothing of it is under way any more. */
  const answer = (response: ServerResponse, wanted: ModelRequest, body: Body) =>
    new Promise<void>(resolve => {
      const asked = ask(wanted, body.bytes)
      let usage: UsageReader | undefined
      let unheard: NodeJS.Timeout | undefined

      /** A stream is ended as soon as its cost is known; what is no stream the model makes to its end anyway. */
      const endUnheard = () => {
        if (usage?.mayStop()) asked.destroy()
      }
      const fail = (reason: string) => {
        asked.destroy()
        if (response.destroyed) return
        log?.warn({ reason }, 'a request to the model API failed')
        // A stream that broke off must not look complete to the agent.
        if (response.headersSent) return response.destroy()
        note({ cause: 'unreachable' })
        refuse(response, failures < mostFailures ? unreachable : { ...unreachable, ...final })
      }
      response.on('close', () => {
        if (response.writableFinished) return
        unheard = setTimeout(() => asked.destroy(), limits.unheardMs)
        // Neither it nor its answer keeps a host from ending.
        unheard.unref()
        asked.socket?.unref()
        endUnheard()
      })
      asked.on('finish', body.release)
      asked.on('timeout', () => fail('the model did not answer in time'))
      asked.on('error', error => fail(error.message))
      asked.on('close', () => {
        clearTimeout(unheard)
        body.release()
        if (usage) count(usage.result())
        resolve()
      })
      asked.on('response', incoming => {
        incoming.on('error', error => fail(error.message))
        const problem = unusable(incoming)
        if (problem !== undefined) return fail(problem)
        const reading = readUsage(incoming.headers['content-type'] ?? '')
        const listener = options.listen?.(incoming.headers['content-type'] ?? '')
        const filter = createKeyFilter(key)
        usage = reading
        const outcome = createOutcome(wanted.path, incoming.statusCode ?? 0)
        if (!response.destroyed) {
          response.writeHead(incoming.statusCode ?? 502, {
            ...headersOfAnswer(incoming.headers, key),
            connection: 'close',
          })
          // Some clients wait for the headers of a stream before its first event.
          response.flushHeaders()
        }
        incoming.on('data', (chunk: Buffer) => {
          reading.push(chunk)
          listener?.push(chunk)
          outcome.push(chunk)
          if (response.destroyed) endUnheard()
          else if (!response.write(filter.push(chunk))) incoming.pause()
        })
        response.on('drain', () => incoming.resume())
        response.on('close', () => incoming.resume())
        incoming.on('end', () => {
          listener?.end()
          note(outcome.problem())
          response.end(filter.end())
        })
      })
    })

  const server = createServer(
    {
      insecureHTTPParser: false,
      maxHeaderSize: headerBytes,
      headersTimeout: 20_000,
      requestTimeout: 120_000,
      connectionsCheckingInterval: 5000,
    },
    (request, response) => {
      serve(request, response).catch(error => {
        log?.error({ err: error }, 'a request to the model could not be served')
        response.destroy()
      })
    },
  )
  server.maxConnections = 4 * limits.atOnce
  // What follows on the same connection is nobody's request: Node answers it with 503.
  server.maxRequestsPerSocket = 1
  // Without listeners Node would take CONNECT and upgrades as far as it can; with these they end at once.
  server.on('connect', (_request, socket) => socket.destroy())
  server.on('upgrade', (_request, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
  // Clients that ask first try again without asking.
  server.on('checkContinue', (_request, response) => refuse(response, expectation))
  server.on('checkExpectation', (_request, response) => refuse(response, expectation))

  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true, mode: 0o755 })
  const release = await listen(server, directory, owner)
  const close = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
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

/**
 * Through the directory's handle: the kernel's field for a socket's path is shorter than many a data directory. The
 * handle stays open for as long as the server does, which removes the socket by the same path.
 */
async function listen(
  server: ReturnType<typeof createServer>,
  directory: string,
  owner: Owner | undefined,
): Promise<() => void> {
  const pinned = openDirectory(directory)
  if (typeof pinned === 'string') throw new Error(`${directory} cannot be opened: ${pinned}`)
  try {
    const path = join(pinned.path, 'model.sock')
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
    chmodSync(path, 0o600)
    if (owner) chownSync(path, owner.uid, owner.gid)
    return pinned.close
  } catch (error) {
    pinned.close()
    throw error
  }
}

/** A connection of its own for every request, so that no request can ever stand behind another one. */
function createUpstream(url: string, silenceMs: number) {
  const upstream = new URL(url)
  const isSecure = upstream.protocol === 'https:'
  const agent = isSecure
    ? new SecureAgent({ keepAlive: false, proxyEnv: process.env })
    : new PlainAgent({ keepAlive: false, proxyEnv: process.env })
  const send = isSecure ? secureRequest : plainRequest
  return ({ method, path, headers }: ModelRequest, body: Buffer): ClientRequest => {
    const asked = send({
      protocol: upstream.protocol,
      // An IPv6 address stands in brackets in a URL and without them in a connection.
      hostname: upstream.hostname.replace(/^\[|\]$/g, ''),
      port: upstream.port || (isSecure ? 443 : 80),
      method,
      path: upstream.pathname.replace(/\/$/, '') + path,
      headers: method === 'GET' ? headers : { ...headers, 'content-length': String(body.length) },
      agent,
      timeout: silenceMs,
      insecureHTTPParser: false,
    })
    asked.end(method === 'GET' ? undefined : body)
    return asked
  }
}

/** Why an answer cannot be given to an agent, if so. */
function unusable({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  if (statusCode < 200 || (statusCode >= 300 && statusCode < 400)) return `it answered with ${statusCode}`
  const coding = headers['content-encoding'] ?? 'identity'
  return coding === 'identity' ? undefined : 'it answered in an encoding that was not asked for'
}

/** Names that agents choose are repeated only if they look like names. */
const unknownModel = /"message" ?: ?"(?:model: ?|[^"]{0,40}?model `)([A-Za-z0-9][\w.:@/-]{0,99})["`]/
const errorBytes = 4096

/** What an answer says about the model API, once it has come. Only errors are read, and only their beginning. */
function createOutcome(path: string, status: number) {
  let text = ''
  // Some gateways cannot count, or list; that keeps nobody from being answered.
  const isTurn = !path.includes('count') && !/^\/v1\/models(\/[^:]*)?$/.test(path)
  return {
    push(chunk: Buffer) {
      if (status >= 400 && text.length < errorBytes) text += chunk.toString('latin1')
    },
    problem(): ModelProblem | undefined {
      if (status === 401) return { cause: 'key_refused' }
      if (status === 402 || (status === 400 && /credit balance/.test(text))) return { cause: 'no_credit' }
      if (status === 429) return { cause: 'rate_limited' }
      if (status >= 500) return { cause: 'failing' }
      if (status !== 404 || !isTurn) return undefined
      const model = unknownModel.exec(text)?.[1]
      if (!/model/.test(text)) return { cause: 'unreachable' }
      return model === undefined ? { cause: 'model_unknown' } : { cause: 'model_unknown', model }
    },
  }
}

interface Body {
  bytes: Buffer
  /** it is sent, and no longer kept; may be called again */
  release(): void
}

/**
 * Reads bodies to their end. What counts is the memory that is set aside, not what has come: a sandbox may announce much
 * and send nothing, or send each byte as a piece of its own.
 */
function createBodyReader(limits: ModelSocketLimits) {
  let heldBytes = 0

  return (request: IncomingMessage): Promise<Body | Refusal> =>
    new Promise(resolve => {
      let bytes = Buffer.alloc(0)
      let size = 0
      const release = () => {
        heldBytes -= bytes.length
        bytes = Buffer.alloc(0)
        body.bytes = bytes
      }
      const body: Body = { bytes, release }
      const stop = (refusal: Refusal) => {
        request.removeAllListeners('data')
        request.pause()
        release()
        resolve(refusal)
      }
      /** whether there is room for so many */
      const reserve = (wanted: number): boolean => {
        if (wanted > limits.requestBytes) stop(tooLarge)
        else if (heldBytes + wanted - bytes.length > limits.heldBytes) stop(noRoom)
        else {
          const larger = Buffer.allocUnsafeSlow(wanted)
          bytes.copy(larger, 0, 0, size)
          heldBytes += wanted - bytes.length
          bytes = larger
          return true
        }
        return false
      }
      const announced = request.headers['content-length']
      if (!reserve(announced === undefined ? Math.min(firstBytes, limits.requestBytes) : Number(announced)))
        return
      request.on('data', (chunk: Buffer) => {
        const end = size + chunk.length
        if (request.socket.bytesRead > wireBytes(end)) return stop(tooLarge)
        if (end > bytes.length && !reserve(Math.max(end, Math.min(2 * bytes.length, limits.requestBytes))))
          return
        chunk.copy(bytes, size)
        size = end
      })
      request.on('end', () => {
        body.bytes = bytes.subarray(0, size)
        resolve(body)
      })
      request.on('error', () => stop(brokenOff))
      request.on('close', () => {
        if (!request.complete) stop(brokenOff)
      })
    })
}

/** what is set aside for a body of unknown length */
const firstBytes = 16_384

const tooLarge: Refusal = {
  status: 413,
  type: 'request_too_large',
  message: 'The request is larger than the host forwards.',
}
const noRoom: Refusal = {
  status: 429,
  type: 'rate_limit_error',
  message: 'The requests of this run that are under way are too large together.',
}
const tooMany: Refusal = {
  status: 429,
  type: 'rate_limit_error',
  message: 'Too many requests of this run are under way.',
}
const brokenOff: Refusal = {
  status: 400,
  type: 'invalid_request_error',
  message: 'The request ended in the middle.',
}
const oldVersion: Refusal = {
  status: 505,
  type: 'invalid_request_error',
  message: 'Only HTTP/1.1 is spoken here.',
}
const expectation: Refusal = {
  status: 417,
  type: 'invalid_request_error',
  message: 'Send the request without Expect.',
}
const unreachable: Refusal = {
  status: 502,
  type: 'api_error',
  message: 'The host could not reach the model API.',
}

/** No client tries again after this; after 401 and 502 some do, for minutes. */
const final = { status: 400, type: 'invalid_request_error' }
const mostFailures = 3
const keyRefused: Refusal = { ...final, message: 'The model API refuses the host’s key.' }

function refuse(response: ServerResponse, { status, type, message }: Refusal): void {
  if (response.destroyed) return
  // The rest of what it wanted to send is not read.
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(JSON.stringify({ type: 'error', error: { type, message } }))
}
