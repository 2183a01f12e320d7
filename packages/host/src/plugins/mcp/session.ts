import type * as Library from '@modelcontextprotocol/client'
import type { Client } from '@modelcontextprotocol/client'
import type { Logger } from 'pino'
import { z } from 'zod'
import { boundAnswer } from './bounds.ts'
import { failureOf, NotOpened } from './failure.ts'
import { type Line, type LineOptions, openLine } from './line.ts'
import { offersOf } from './offers.ts'
import type { Timing } from './timing.ts'

/** A conversation with a server that has said who it is. */
export interface Session {
  client: Client
  library: typeof Library
  /** everything it lists, as it came, and how to read what else it has */
  tools(): Promise<unknown[]>
  /** asks for a sign of life; why the conversation is over, if none comes in time */
  signOfLife(): Promise<Ending | undefined>
  /** calls it is at work on, counted by whoever makes them */
  work: { calls: number }
  lastWords(): string
  close(ending: Ending): void
  /** as soon as it is of no use any longer */
  ending: Promise<Ending>
  /** when nothing of it is left */
  over: Promise<void>
}

interface Ending {
  /** continues "the server …" */
  why: string
  how: 'politely' | 'at once'
  /** the answer to the only call it was at work on was too large to be read */
  isTooLarge?: boolean
}

export interface SessionOptions extends Omit<LineOptions, 'flooded' | 'graceMs'> {
  version: string
  timing: Timing
  /** asks for the protocol of 2026 first, for servers that know no other; the older greeting is understood by most */
  isModern: boolean
  signal: AbortSignal
  log: Logger
  listChanged(): void
  /** something went wrong on the way, which may mean that it is gone */
  doubt(): void
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { library, timing, signal, log } = options
  const { promise: firstWord, resolve: close } = Promise.withResolvers<Ending>()
  const work = { calls: 0 }
  const line = await openLine({
    ...options,
    graceMs: timing.graceMs,
    flooded: () =>
      close({
        why: 'gave an answer that is too large to be read and was ended',
        how: 'at once',
        isTooLarge: work.calls === 1,
      }),
  })
  const { transport } = line
  const { onmessage } = transport
  let heard = 0
  transport.onmessage = (message, extra) => {
    heard++
    boundAnswer(message)
    onmessage?.(message, extra)
  }
  const client = new library.Client(
    { name: 'hatchway', title: 'Hatchway', version: options.version },
    {
      // It is lent to agents and serves no person: nobody is there to be asked, and no model is lent to it.
      capabilities: {},
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode: options.isModern ? 'auto' : 'legacy' },
    },
  )
  client.setNotificationHandler('notifications/tools/list_changed', options.listChanged)
  client.onclose = () => close({ why: 'closed the connection', how: 'at once' })
  try {
    await client.connect(transport, { timeout: timing.connectMs, signal })
  } catch (error) {
    const problem = await whyNotOpened(error, line, options)
    await line.end('politely')
    throw problem
  }
  client.onerror = error => {
    log.debug({ err: error }, 'something the server did was not understood')
    options.doubt()
  }
  const isModern = client.getProtocolEra() === 'modern'
  if (isModern && client.getServerCapabilities()?.tools?.listChanged) void subscribe(client, signal, log)

  // One that has ended by itself tells better why than whoever noticed it first.
  const ending = firstWord.then(async seen => {
    const why = seen.how === 'politely' ? undefined : await line.ended()
    return why === undefined ? seen : { ...seen, why }
  })
  return {
    client,
    library,
    work,
    async tools() {
      const tools = await toolsOf(client, timing.listMs)
      const names = new Set(tools.map(tool => nameSchema.safeParse(tool).data?.name))
      return [...tools, ...offersOf(client.getServerCapabilities()).filter(({ name }) => !names.has(name))]
    },
    async signOfLife() {
      const before = heard
      const patience = { timeout: timing.pingMs }
      try {
        await (isModern ? client.discover(patience) : client.ping(patience))
        return undefined
      } catch (error) {
        const { code, connection, text } = failureOf(error, library)
        // A refusal is a sign of life, and so is any other word.
        if (heard > before || (connection === 'kept' && code !== 'expired')) return undefined
        return { why: code === 'expired' ? 'gave no sign of life and was ended' : text, how: 'at once' }
      }
    },
    lastWords: line.lastWords,
    close,
    ending,
    over: ending.then(({ how }) => line.end(how)),
  }
}

async function whyNotOpened(error: unknown, line: Line, options: SessionOptions): Promise<NotOpened> {
  const { library, timing } = options
  const { code, connection, text, detail } = failureOf(error, library)
  if (code === 'expired') {
    const seconds = timing.connectMs / 1000
    return new NotOpened(`did not say who it is within ${seconds} seconds`, line.lastWords())
  }
  if (connection === 'closed') {
    const how = (await line.ended()) ?? 'closed the connection'
    return new NotOpened(`${how} before it said who it is`, line.lastWords())
  }
  if (error instanceof library.SdkHttpError && error.status === 404)
    return new NotOpened('is not at its address (HTTP 404)', '')
  const isRefusal =
    error instanceof library.ProtocolError ||
    (error instanceof library.SdkHttpError && error.status === 400) ||
    (error instanceof Error && error.message.startsWith("Server's protocol version is not supported"))
  return new NotOpened(text, detail ?? line.lastWords(), isRefusal)
}

const nameSchema = z.object({ name: z.string() })
const page = z.object({
  tools: z.array(z.unknown()).max(10_000),
  nextCursor: z.string().max(65_536).optional().catch(undefined),
})
const mostPages = 50
const mostListed = 2000

/** Page by page, and not for ever: a list may lead in a circle. */
async function toolsOf(client: Client, timeout: number): Promise<unknown[]> {
  if (!client.getServerCapabilities()?.tools) return []
  const tools: unknown[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; pages < mostPages && tools.length < mostListed; pages++) {
    const params = cursor === undefined ? {} : { cursor }
    const answer = await client.request({ method: 'tools/list', params }, page, { timeout })
    tools.push(...answer.tools)
    cursor = answer.nextCursor
    if (cursor === undefined || seen.has(cursor)) break
    seen.add(cursor)
  }
  return tools
}

const resubscribeMs = 30_000

/** In the protocol of 2026 a server tells of changes only to whoever listens. */
async function subscribe(client: Client, signal: AbortSignal, log: Logger): Promise<void> {
  while (client.transport && !signal.aborted) {
    try {
      const subscription = await client.listen({ toolsListChanged: true })
      await subscription.closed
    } catch (error) {
      log.debug({ err: error }, 'the server does not tell when its tools change')
    }
    await new Promise<void>(resolve => setTimeout(resolve, resubscribeMs).unref())
  }
}
