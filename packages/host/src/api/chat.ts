import { refusal } from '@hatchway/protocol'
import { Hono } from 'hono'
import { z } from 'zod'
import { triggerOf } from '../agents/reception.ts'
import type { Chats } from '../channels/chats.ts'
import { cardOf, readHistory } from '../channels/history.ts'
import type { Config } from '../config.ts'
import { byId, cardOf as cardOfApproval } from '../guard/approvals/card.ts'
import type { Store } from '../store/types.ts'
import { version } from '../version.ts'
import { wholeOf } from './approvals.ts'
import {
  type ApprovalAnswer,
  type ChatAnswer,
  type ChatStatusAnswer,
  chatJid,
  choiceRequest,
  decisionRequest,
  entryOf,
  newEntryRequest,
  type QuestionAnswer,
} from './chat-answers.ts'
import { chatEventStream } from './chat-events.ts'
import { ApiError } from './failure.ts'
import { bodyOf, check, whole } from './requests.ts'

export interface ChatOptions {
  chats: Pick<Chats, 'approvals' | 'channelOf' | 'feed' | 'web'>
  store: Store
  config: Pick<Config, 'agents' | 'groups'>
  /** stays on screen: the sandbox isolates nothing, for one */
  warning?: () => string | undefined
  signal: AbortSignal
  heartbeatMs?: number
  eventBufferBytes?: number
}

const historyQuery = z.object({ limit: whole(1, 1000).optional() })
const eventsQuery = z.object({ after: z.string().max(64).optional() })

/** The chats: the same routes for the terminal, over the daemon's socket, and for browsers. */
export function createChatRoutes(options: ChatOptions): Hono {
  const { chats, store, config, signal, heartbeatMs = 15_000, eventBufferBytes = 4_194_304 } = options
  const app = new Hono()

  const groupOf = (jid: string) => {
    const group = store.groups().find(candidate => candidate.jid === check(chatJid, jid, 'jid'))
    if (!group) throw new ApiError(refusal('not_found', 'No group is registered for this chat.'))
    return group
  }
  const nameOfChannel = (jid: string) => chats.channelOf(jid)?.name ?? 'none'
  // Where no other channel delivers, this is the only place to write.
  const isWritable = (jid: string) => ['web', 'log', 'none'].includes(nameOfChannel(jid))

  app.get('/status', c =>
    c.json({
      version,
      assistant: config.agents.assistant,
      warning: options.warning?.() ?? null,
    } satisfies ChatStatusAnswer),
  )

  app.get('/chats', c => {
    const typing = new Set(chats.web.typingIn())
    return c.json(
      store
        .groups()
        .toSorted((a, b) => Number(b.main) - Number(a.main))
        .map(
          (group): ChatAnswer => ({
            jid: group.jid,
            folder: group.folder,
            name: group.name,
            main: group.main,
            channel: nameOfChannel(group.jid),
            writable: isWritable(group.jid),
            trigger: group.main || !group.requires_trigger ? null : triggerOf(group, config.agents.assistant),
            typing: typing.has(group.jid),
          }),
        ),
    )
  })

  app.get('/chats/:jid/messages', c => {
    const group = groupOf(c.req.param('jid'))
    const { limit = 200 } = check(historyQuery, c.req.query())
    const { entries, more } = readHistory(store, group, limit, chats.approvals)
    return c.json({ entries: entries.map(entryOf), more })
  })

  const writableChat = (named: string) => {
    const { jid } = groupOf(named)
    if (isWritable(jid)) return jid
    const where = nameOfChannel(jid)
    throw new ApiError(refusal('forbidden', `This chat is one of the channel ${where}: write there.`))
  }

  app.post('/chats/:jid/messages', async c => {
    const jid = writableChat(c.req.param('jid'))
    const { text, id } = check(newEntryRequest, await bodyOf(c.req.raw))
    const received = await chats.web.post({ jid, text, id })
    if (!received.ok) throw new ApiError(received.error)
    const key = received.id === undefined ? null : `in:${received.id}`
    return c.json({ key, status: received.status }, key === null ? 200 : 201)
  })

  app.post('/chats/:jid/questions/:id', async c => {
    const jid = writableChat(c.req.param('jid'))
    const { question, ...answer } = check(choiceRequest, await bodyOf(c.req.raw))
    const chosen = await chats.web.choose({ jid, id: c.req.param('id'), question, answer })
    if (!chosen.ok) throw new ApiError(chosen.error)
    return c.json(cardOf(chosen.question) satisfies QuestionAnswer)
  })

  // Whichever channel the chat is of: whoever may decide sees the card here as well.
  app.get('/chats/:jid/approvals/:id', c => {
    const { folder, jid } = groupOf(c.req.param('jid'))
    const row = byId(store.approvals, c.req.param('id'))
    if (row?.jid !== jid || row.group !== folder) {
      throw new ApiError(refusal('not_found', 'Nothing of this id waits in this chat.'))
    }
    return c.json(wholeOf(config, row, chats.approvals))
  })

  app.post('/chats/:jid/approvals/:id', async c => {
    const { jid } = groupOf(c.req.param('jid'))
    const { decision, words } = check(decisionRequest, await bodyOf(c.req.raw))
    const settled = await chats.web.decide({ jid, id: c.req.param('id'), decision, words })
    if (!settled.ok) throw new ApiError(settled.error)
    return c.json(cardOfApproval(config, settled.approval) satisfies ApprovalAnswer)
  })

  app.get('/events', c => {
    const { after } = check(eventsQuery, c.req.query())
    const stream = chatEventStream(chats, {
      after: c.req.header('last-event-id') ?? after,
      heartbeatMs,
      bufferBytes: eventBufferBytes,
      signal,
    })
    return c.body(stream, 200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
  })

  return app
}
