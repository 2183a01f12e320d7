import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
  type ServerResponse,
} from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { join } from 'node:path'
import { type Owner, pinDirectory } from '@hatchway/spool'
import type { Logger } from 'pino'
import { type ModelUsage, readUsage } from './model-usage.ts'

/**
 * The model through the hatch. A run without a network talks to this socket; we talk to the model API with the host's
 * key, which no sandbox ever sees. One address, one path prefix, two methods: nothing else can be reached through it.
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
  log?: Logger
  limits?: Partial<ModelSocketLimits>
}

interface ModelSocketLimits {
  requestBytes: number
  atOnce: number
  /** without a byte from the model */
  silenceMs: number
}

export interface ModelSocket {
  /** to be mounted read-only at /run/hatchway */
  directory: string
  close(): Promise<void>
}

const usualLimits: ModelSocketLimits = { requestBytes: 33_554_432, atOnce: 16, silenceMs: 600_000 }

/** They belong to one connection, or are ours to set. */
const notForwarded = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'authorization',
  'x-api-key',
  'cookie',
  'set-cookie',
  // Usage is read from what comes back, so it must come readable.
  'accept-encoding',
])

export async function serveModel(options: ModelSocketOptions): Promise<ModelSocket> {
  const { directory, owner, key, log } = options
  const limits = { ...usualLimits, ...options.limits }
  const upstream = new URL(options.url)
  const secure = upstream.protocol === 'https:'
  const agent = secure
    ? new SecureAgent({ keepAlive: true, proxyEnv: process.env })
    : new PlainAgent({ keepAlive: true, proxyEnv: process.env })
  const send = secure ? secureRequest : plainRequest
  let underWay = 0

  function forward(request: IncomingMessage, response: ServerResponse, path: string): void {
    const headers = outgoing(request.headers, key)
    const forwarded = send(
      {
        protocol: upstream.protocol,
        // An IPv6 address stands in brackets in a URL and without them in a connection.
        hostname: upstream.hostname.replace(/^\[|\]$/g, ''),
        port: upstream.port || (secure ? 443 : 80),
        method: request.method ?? 'GET',
        path: upstream.pathname.replace(/\/$/, '') + path,
        headers,
        agent,
        timeout: limits.silenceMs,
      },
      answer => {
        const usage = readUsage(answer.headers['content-type'] ?? '')
        response.writeHead(answer.statusCode ?? 502, withoutHops(answer.headers))
        // Some clients wait for the headers of a stream before its first event.
        response.flushHeaders()
        answer.on('data', (chunk: Buffer) => usage.push(chunk))
        answer.pipe(response)
        answer.on('error', () => response.destroy())
        answer.on('close', () => {
          options.onUsage(usage.result() ?? { model: '', inputTokens: 0, outputTokens: 0 })
          // A stream that broke off must not look complete to the agent.
          if (!answer.complete) response.destroy()
        })
      },
    )
    forwarded.on('timeout', () => forwarded.destroy(new Error('the model did not answer in time')))
    forwarded.on('error', error => {
      if (response.destroyed) return
      log?.warn({ error: error.message }, 'a request to the model API failed')
      if (response.headersSent) response.destroy()
      else refuse(response, 502, 'api_error', 'The host could not reach the model API.')
    })
    // The agent has gone: what it asked for need not be answered, or paid for.
    response.on('close', () => {
      if (!response.writableFinished) forwarded.destroy()
    })

    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= limits.requestBytes || response.headersSent) return
      request.pause()
      request.unpipe(forwarded)
      tooLarge(response)
      forwarded.destroy()
    })
    request.pipe(forwarded)
    request.on('error', () => forwarded.destroy())
  }

  const server = createServer((request, response) => {
    const path = allowedPath(request.url ?? '')
    if (path === undefined)
      return refuse(
        response,
        404,
        'not_found_error',
        'Only paths below /v1/ of the model API are served here.',
      )
    if (request.method !== 'POST' && request.method !== 'GET')
      return refuse(response, 405, 'invalid_request_error', 'Only GET and POST are forwarded.')
    if (Number(request.headers['content-length'] ?? 0) > limits.requestBytes) return tooLarge(response)
    if (underWay >= limits.atOnce)
      return refuse(response, 429, 'rate_limit_error', 'Too many requests of this run are under way.')
    underWay++
    response.once('close', () => underWay--)
    forward(request, response, path)
  })
  server.maxConnections = 4 * limits.atOnce
  // Without listeners Node would take CONNECT and upgrades as far as it can; with these they end at once.
  server.on('connect', (_request, socket) => socket.destroy())
  server.on('upgrade', (_request, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())

  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true, mode: 0o755 })
  const release = await listen(server, directory, owner)
  const close = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
    release()
    agent.destroy()
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
  const pinned = pinDirectory(directory)
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

/** The path as it will be sent: nothing in it that another reader might resolve to outside of /v1/. */
export function allowedPath(url: string): string | undefined {
  const [path = '', ...query] = url.split('?')
  if (!/^\/v1\/[A-Za-z0-9._~:@!$&'()*+,;=%/-]+$/.test(path)) return undefined
  // Dots and slashes may also be written as %2e and %2f.
  if (/%(2e|2f|5c|25|00)/i.test(path) || path.split('/').some(part => part === '..' || part === '.'))
    return undefined
  if (path.includes('//')) return undefined
  return query.length === 0 ? path : `${path}?${query.join('?')}`
}

function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map(name => name.trim().toLowerCase())
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !notForwarded.has(name) && !named.includes(name)),
  )
}

/** The sandbox's own key is a placeholder; ours takes its place, in the header it came in. */
function outgoing(headers: IncomingHttpHeaders, key: string): IncomingHttpHeaders {
  const kept = { ...withoutHops(headers), 'accept-encoding': 'identity' }
  return headers.authorization !== undefined && headers['x-api-key'] === undefined
    ? { ...kept, authorization: `Bearer ${key}` }
    : { ...kept, 'x-api-key': key }
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  const body = JSON.stringify({ type: 'error', error: { type, message } })
  // The rest of what it wanted to send is not read.
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(body)
}

const tooLarge = (response: ServerResponse) =>
  refuse(response, 413, 'request_too_large', 'The request is larger than the host forwards.')
