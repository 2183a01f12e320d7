import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { ApiFailure, failures } from './failure.ts'
import { createGateway, type WebSockets } from './gateway.ts'
import { type Interaction, type Notice, routeFor } from './routes.ts'
import { createWorld } from './world.ts'

/**
 * A stand-in for Discord, written from its documentation at https://docs.discord.com/developers: the gateway, the part of
 * the HTTP API that a chat needs, interactions, webhooks, limits and the files that people send. Refusals have the codes
 * of the service.
 */
export async function startDiscord(options: { library: WebSockets; heartbeatMs?: number }) {
  const world = createWorld()
  const token = `${Buffer.from(world.bot.id).toString('base64url')}.Gabcde.${'x'.repeat(38)}`
  const interactions = new Map<string, Interaction>()
  const notices: Notice[] = []
  const refusals: (ApiFailure | undefined)[] = []
  /** what the bot asked for */
  const calls: { method: string; path: string; body: unknown }[] = []
  const limit: { perRoute: number; seconds: number } = { perRoute: 1000, seconds: 1 }
  const used = new Map<string, number>()
  let server: Server | undefined
  let port = 0

  const base = () => `http://127.0.0.1:${port}`
  const gatewayUrl = () => `ws://127.0.0.1:${port}/`
  const gateway = createGateway({
    world,
    token,
    library: options.library,
    url: gatewayUrl,
    heartbeatMs: options.heartbeatMs ?? 41_250,
  })
  const context = {
    world,
    gateway,
    interactions,
    notices,
    gatewayUrl,
    fileUrl: (id: string) => `${base()}/attachments/${id}`,
  }

  /** https://docs.discord.com/developers/topics/rate-limits: so many requests of a route, and then none for a while */
  const count = (route: string) => {
    const now = Date.now()
    const began = [...used.keys()].find(
      key => key.startsWith(`${route} `) && now < Number(key.split(' ').at(-1)),
    )
    const key = began ?? `${route} ${now + limit.seconds * 1000}`
    const times = (used.get(key) ?? 0) + 1
    const resetAfter = (Number(key.split(' ').at(-1)) - now) / 1000
    if (times > limit.perRoute) throw failures.limited(resetAfter)
    used.set(key, times)
    return {
      'x-ratelimit-limit': String(limit.perRoute),
      'x-ratelimit-remaining': String(limit.perRoute - times),
      'x-ratelimit-reset-after': resetAfter.toFixed(3),
      'x-ratelimit-bucket': 'abcd1234',
    }
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', base())
    const [, file] = /^\/attachments\/(\d+)$/.exec(url.pathname) ?? []
    if (file !== undefined) {
      calls.push({ method: 'GET', path: url.pathname, body: undefined })
      const content = world.files.get(file)
      return void response.writeHead(content ? 200 : 404).end(content)
    }
    const path = decodeURIComponent(url.pathname).replace(/^\/api\/v10/, '')
    const method = request.method ?? 'GET'
    const { body, files } = await contentOf(request)
    calls.push({ method, path, body })
    const needsToken = !/^\/(?:interactions|webhooks)\//.test(path)
    if (needsToken && request.headers.authorization !== `Bot ${token}`) throw failures.unauthorized()
    const isDelivery = method === 'POST' && /^\/(?:channels\/\d+\/messages|webhooks\/.*)$/.test(path)
    const refused = isDelivery ? refusals.shift() : undefined
    if (refused) throw refused
    const route = routeFor(method, path)
    if (!route) throw new ApiFailure(404, 0, '404: Not Found')
    const headers = isDelivery ? count(path) : {}
    const result = await route.handle({ ids: route.ids, query: url.searchParams, body, files }, context)
    if (result === undefined) response.writeHead(204, headers).end()
    else
      response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(result))
  }

  const listen = async () => {
    server = createServer((request, response) => {
      handle(request, response).catch(error => fail(response, error))
    })
    server.on('upgrade', gateway.upgrade)
    const { promise, resolve } = Promise.withResolvers<void>()
    server.listen(port, '127.0.0.1', resolve)
    await promise
    port = (server.address() as AddressInfo).port
  }
  await listen()

  return {
    ...context,
    token,
    calls,
    limit,
    /** what the next deliveries are refused with; undefined: that one is not */
    refusals,
    url: () => `${base()}/api`,
    async down() {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (!server) return
      server.close(() => resolve())
      server.closeAllConnections()
      gateway.cut()
      server = undefined
      await promise
    },
    up: listen,
  }
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.destroyed || response.headersSent) return
  const failure = error instanceof ApiFailure ? error : new ApiFailure(500, 0, String(error))
  const { status, code, message, limit } = failure
  response
    .writeHead(status, {
      'content-type': 'application/json',
      ...(limit && {
        'retry-after': String(Math.ceil(limit.retryAfter)),
        'x-ratelimit-scope': limit.isGlobal ? 'global' : 'user',
        ...(limit.isGlobal && { 'x-ratelimit-global': 'true' }),
      }),
    })
    .end(
      JSON.stringify({
        message,
        code,
        ...(limit && { retry_after: limit.retryAfter, global: limit.isGlobal }),
      }),
    )
}

async function contentOf(request: IncomingMessage): Promise<{ body: unknown; files: File[] }> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const content = Buffer.concat(chunks)
  const type = request.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/form-data'))
    return { body: content.length === 0 ? undefined : JSON.parse(content.toString()), files: [] }
  const form = await new Response(content, { headers: { 'content-type': type } }).formData()
  const body: unknown = JSON.parse(z.string().parse(form.get('payload_json') ?? '{}'))
  return { body, files: [...form.values()].filter(value => value instanceof File) }
}
