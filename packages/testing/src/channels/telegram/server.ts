import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { ApiFailure } from './failure.ts'
import { type MethodContext, methods } from './methods.ts'
import { type BotAccount, createWorld, type Update } from './world.ts'

/**
 * A stand-in for Telegram's Bot API, written from its documentation: https://core.telegram.org/bots/api (making requests,
 * getting updates, available methods and types), https://core.telegram.org/bots/features#privacy-mode and
 * https://core.telegram.org/bots/faq (limits). Updates stay until a request names a higher offset; a second request for
 * updates ends the first; limits are refused with the words that the service uses.
 */
export async function startBotApi() {
  const world = createWorld()
  const queries = new Set<string>()
  const notices: { id: string; text: string | undefined }[] = []
  const refusals: (ApiFailure | undefined)[] = []
  /** what the bots asked for, by method, as they did, and when */
  const calls: { method: string; given: Record<string, unknown>; at: bigint }[] = []
  const faults = { noFiles: false }
  let server: Server | undefined
  let port = 0

  const contextOf = (bot: BotAccount): MethodContext => ({
    world,
    bot,
    queries,
    now: Date.now,
    answered: query => notices.push(query),
  })

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const [, isFile, token = '', rest = ''] =
      /^\/(file\/)?bot([^/]+)\/(.+)$/.exec(decodeURIComponent(request.url ?? '')) ?? []
    const bot = world.bots.get(token)
    if (!bot) throw new ApiFailure(401, 'Unauthorized')
    if (isFile) {
      const file = [...world.files.values()].find(({ path }) => path === rest)
      if (!file) throw new ApiFailure(404, 'Not Found')
      if (faults.noFiles) throw new ApiFailure(500, 'Internal Server Error')
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(file.content)
      return
    }
    const given = await parametersOf(request)
    calls.push({ method: rest, given, at: process.hrtime.bigint() })
    const method = methods[rest]
    if (rest.startsWith('send') && rest !== 'sendChatAction') {
      const refused = refusals.shift()
      if (refused) throw refused
    }
    if (rest !== 'getUpdates' && !method) throw new ApiFailure(404, 'Not Found: method not found')
    const result = method
      ? await method(given, contextOf(bot))
      : await updatesFor(bot, updatesAsked.parse(given), response)
    answer(response, 200, { ok: true, result })
  }

  const listen = async () => {
    server = createServer((request, response) => {
      handle(request, response).catch(error => {
        const { code, parameters } =
          error instanceof ApiFailure ? error : { code: 400, parameters: undefined }
        const description = error instanceof Error ? error.message : String(error)
        answer(response, code, {
          ok: false,
          error_code: code,
          description: error instanceof ApiFailure ? description : `Bad Request: ${description}`,
          ...(parameters && { parameters }),
        })
      })
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    server.listen(port, '127.0.0.1', resolve)
    await promise
    port = (server.address() as AddressInfo).port
  }
  await listen()

  return {
    world,
    calls,
    /** what people were told who pressed a button */
    notices,
    /** what the next deliveries are refused with; undefined: that one is not */
    refusals,
    faults,
    queries,
    url: () => `http://127.0.0.1:${port}`,
    async down() {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (!server) return
      server.close(() => resolve())
      server.closeAllConnections()
      server = undefined
      await promise
    },
    up: listen,
  }
}

const updatesAsked = z.object({
  offset: z.number().optional(),
  limit: z.number().min(1).max(100).default(100),
  timeout: z.number().default(0),
  allowed_updates: z.array(z.string()).optional(),
})

async function updatesFor(
  bot: BotAccount,
  { offset = 0, limit, timeout, allowed_updates }: z.output<typeof updatesAsked>,
  response: ServerResponse,
): Promise<readonly Update[]> {
  if (allowed_updates) bot.allowed = allowed_updates
  bot.confirmed.push(...bot.updates.filter(({ update_id }) => update_id < offset))
  bot.updates = bot.updates.filter(({ update_id }) => update_id >= offset)
  bot.waiting?.terminate()
  if (bot.updates.length === 0 && timeout > 0) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, timeout * 1000)
    const waiting = {
      wake: resolve,
      terminate: () =>
        reject(
          new ApiFailure(
            409,
            'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
          ),
        ),
    }
    bot.waiting = waiting
    response.once('close', resolve)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      if (bot.waiting === waiting) bot.waiting = undefined
    }
  }
  return bot.updates.slice(0, limit)
}

function answer(response: ServerResponse, status: number, content: object): void {
  if (response.destroyed || response.headersSent) return
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content))
}

async function parametersOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const type = request.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/form-data'))
    return body.length === 0 ? {} : z.record(z.string(), z.unknown()).parse(JSON.parse(body.toString()))
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  // A field may name the part that has its file.
  return Object.fromEntries(
    [...form].map(([name, value]) => [
      name,
      typeof value === 'string' && value.startsWith('attach://')
        ? form.get(value.slice('attach://'.length))
        : value,
    ]),
  )
}
