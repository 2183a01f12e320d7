import type { Logger } from 'pino'
import { z } from 'zod'
import { createWorkQueue } from '../../../base/keyed-queue.ts'
import { pause } from '../../../base/pause.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { type SlackApi, SlackRefusal } from './api.ts'
import { messageSchema, type SlackMessage, timeOf } from './said.ts'

/**
 * What was said while nobody was there. Slack tells an event again for some minutes only, so how far each chat was read
 * is remembered with the chat, and the rest is fetched. Only chats in which somebody was heard are remembered.
 */
export interface History {
  chats(): readonly string[]
  /** `ts` and all before it are stored; `begins`: the chat is to be remembered from now on */
  noted(channel: string, message: Pick<SlackMessage, 'ts' | 'thread_ts'>, begins: boolean): void
  /** what came after, oldest first */
  missed(channel: string, signal: AbortSignal): Promise<readonly SlackMessage[]>
}

const pageSize = 200
const mostPages = 50
/** threads of a chat that are looked into, whenever they began */
const mostThreads = 20
/** what began so long before the last message that was stored is looked through for threads that went on since */
const lookBackSeconds = 86_400
/** chats that are fetched at the same time */
const atOnce = 4

const readSchema = z.object({ ts: z.string(), threads: z.array(z.string()) })
type Read = z.output<typeof readSchema>

export function createHistory(options: {
  api: SlackApi
  memory: Pick<ChannelHost, 'recall' | 'remember'>
  /** Slack has asked to wait */
  limited(ms: number): void
  log: Logger
}): History {
  const { api, memory, log } = options
  const keyOf = (channel: string) => `read:${channel}`
  const readOf = (channel: string): Read | undefined => {
    const stored = memory.recall(keyOf(channel))
    return stored === undefined ? undefined : readSchema.parse(JSON.parse(stored))
  }
  const chats = () => z.array(z.string()).parse(JSON.parse(memory.recall('chats') ?? '[]'))
  const queue = createWorkQueue({ all: atOnce })

  /** Waits for as long as Slack asks. Undefined: it refuses. */
  const patiently = async <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> => {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof SlackRefusal)) throw error
        if (error.retryAfterMs === undefined) {
          log.warn({ reason: error.message }, 'what was said meanwhile cannot be read')
          return undefined
        }
        options.limited(error.retryAfterMs)
        await pause(error.retryAfterMs, signal)
      }
    }
  }

  type Page = { messages?: unknown[]; response_metadata?: { next_cursor?: string } }
  /** All that a method gives page by page, in no order. */
  const readAll = async (
    channel: string,
    signal: AbortSignal,
    ask: (cursor: { cursor?: string }) => Promise<Page>,
  ): Promise<SlackMessage[]> => {
    const found: SlackMessage[] = []
    let cursor: string | undefined
    for (let page = 0; page < mostPages; page++) {
      const answer = await patiently(signal, () => ask(cursor ? { cursor } : {}))
      for (const message of answer?.messages ?? []) {
        const parsed = messageSchema.safeParse({ ...(message as object), channel })
        if (parsed.success) found.push(parsed.data)
      }
      cursor = answer?.response_metadata?.next_cursor
      if (!cursor) return found
    }
    log.warn({ channel }, 'too much was said in a chat while nobody was there: the oldest of it is left out')
    return found
  }

  const fetchMissed = async (channel: string, { ts, threads }: Read, signal: AbortSignal) => {
    const oldest = (Number(ts) - lookBackSeconds).toFixed(6)
    const said = await readAll(channel, signal, cursor =>
      api.ask(web => web.conversations.history({ channel, oldest, limit: pageSize, ...cursor })),
    )
    const wentOn = said.filter(({ latest_reply }) => latest_reply !== undefined && latest_reply > ts)
    const answers: SlackMessage[] = []
    for (const thread of new Set([...threads, ...wentOn.map(message => message.ts)]))
      answers.push(
        ...(await readAll(channel, signal, cursor =>
          api.ask(web =>
            web.conversations.replies({ channel, ts: thread, oldest: ts, limit: pageSize, ...cursor }),
          ),
        )),
      )
    const byTime = new Map([...said, ...answers].map(message => [message.ts, message]))
    return [...byTime.values()]
      .filter(message => message.ts > ts)
      .toSorted((a, b) => timeOf(a.ts) - timeOf(b.ts) || (a.ts < b.ts ? -1 : 1))
  }

  return {
    chats,
    noted(channel, { ts, thread_ts }, begins) {
      const before = readOf(channel)
      if (!before && !begins) return
      const threads = [...(thread_ts ? [thread_ts] : []), ...(before?.threads ?? [])]
      const read: Read = {
        ts: before && before.ts > ts ? before.ts : ts,
        threads: [...new Set(threads)].slice(0, mostThreads),
      }
      memory.remember(keyOf(channel), JSON.stringify(read))
      if (!before) memory.remember('chats', JSON.stringify([...chats(), channel]))
    },
    async missed(channel, signal) {
      const read = readOf(channel)
      return read ? queue.run(channel, signal, () => fetchMissed(channel, read, signal)) : []
    },
  }
}
