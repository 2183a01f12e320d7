import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { startDaemon } from '../assemble/main.ts'
import type { Role } from '../config/web.ts'
import { type ConfigInput, configSchema } from '../config.ts'
import { hashPassword } from './access/password.ts'
import { usualSocket } from './socket.ts'

/** A daemon with its console, and browsers as programs: any header can be set, those a browser keeps for itself too. */

export const password = 'correct horse battery staple'
let hash: Promise<string> | undefined
/** One person of each role, all with the same password. */
export async function people() {
  hash ??= hashPassword(password)
  const passwordHash = await hash
  const person = (name: string, role: Role) => ({ name, role, passwordHash })
  return [person('vera', 'viewer'), person('Abel', 'approver'), person('ada', 'admin')]
}

export function folder(name: string): string {
  const path = mkdtempSync(join(tmpdir(), `hatchway-${name}-`))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export async function openDaemon(input: ConfigInput = {}, data = folder('console')) {
  const config = {
    ...configSchema.parse({
      timezone: 'UTC',
      logLevel: 'silent',
      durability: 'process',
      ...input,
      agents: { enabled: 'no', ...input.agents },
      web: { port: 0, ...input.web },
    }),
    data,
  }
  const daemon = await startDaemon(config)
  let isOpen = true
  const stop = async () => {
    if (isOpen) await daemon.stop()
    isOpen = false
  }
  onTestFinished(stop)
  const { web, host, agentsReady } = daemon
  if (!web) throw new Error('nothing is served')
  const socket = usualSocket(data)
  return { config, data, host, web, agentsReady, port: web.port, link: web.link ?? '', socket, stop }
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever came; tests look at it
  json: any
}

export interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: string | undefined
}

interface Where {
  port?: number
  socketPath?: string
  /** the certificate to trust */
  ca?: string
}

export const begin = (
  { ca, ...where }: Where,
  path: string,
  { method = 'GET', headers = {}, body }: Sent = {},
) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = {
      host: '127.0.0.1',
      ...where,
      path,
      method,
      headers: { ...length, ...headers },
      agent: false,
    }
    const outgoing =
      ca === undefined ? request(options) : secureRequest({ ...options, ca, servername: 'localhost' })
    outgoing.once('error', reject)
    outgoing.once('response', resolve)
    outgoing.end(body)
  })

export async function send(where: Where, path: string, sent: Sent = {}): Promise<Answer> {
  const response = await begin(where, path, sent)
  let text = ''
  response.setEncoding('utf8')
  for await (const part of response) text += part
  const isJson = response.headers['content-type']?.startsWith('application/json')
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    json: isJson && text !== '' ? JSON.parse(text) : undefined,
  }
}

/** What `set-cookie` gave, as a browser sends it back. */
export const cookieIn = ({ headers }: Pick<Answer, 'headers'>): string =>
  [headers['set-cookie'] ?? []]
    .flat()
    .map(cookie => cookie.split(';')[0] ?? '')
    .join('; ')

/** A browser that has been let in. */
export interface Visitor {
  headers: Record<string, string>
  get(path: string): Promise<Answer>
  /** with all that our own page would send */
  change(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

export async function visitorWith(where: Where & { port: number }, cookie: string): Promise<Visitor> {
  const origin = `${where.ca === undefined ? 'http://127.0.0.1' : 'https://127.0.0.1'}:${where.port}`
  const me = await send(where, '/api/me', { headers: { cookie } })
  const headers = { cookie, origin, 'x-hatchway-csrf': me.json?.csrf ?? '' }
  return {
    headers,
    get: path => send(where, path, { headers: { cookie } }),
    change: (method, path, body = {}, more = {}) =>
      send(where, path, {
        method,
        headers: { ...headers, 'content-type': 'application/json', ...more },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  }
}

/** By the printed link. */
export async function byLink(opened: { port: number; link: string }): Promise<Visitor> {
  const welcome = await send({ port: opened.port }, `/${new URL(opened.link).search}`)
  return visitorWith({ port: opened.port }, cookieIn(welcome))
}

export const login = (
  { port }: { port: number },
  name: string,
  given = password,
  headers: Record<string, string> = {},
) =>
  send({ port }, '/api/login', {
    method: 'POST',
    headers: { origin: `http://127.0.0.1:${port}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ name, password: given }),
  })

export async function byPassword(opened: { port: number }, name: string): Promise<Visitor> {
  return visitorWith({ port: opened.port }, cookieIn(await login(opened, name)))
}
