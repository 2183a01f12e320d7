import { z } from 'zod'
import { version } from '../base/version.ts'
import { isShownIn } from '../chat/approvals/approvers.ts'
import { byId, cardOf as cardOfApproval } from '../chat/approvals/card.ts'
import type { ChatEvent } from '../chat/feed.ts'
import { type ChatEntry, cardOf, readHistory } from '../chat/history.ts'
import { triggerOf } from '../chat/trigger.ts'
import { isoOf } from '../store/entities/instant.ts'
import { notePersonZone } from '../store/person-zones.ts'
import { wholeOf } from './approvals.ts'
import {
  approvalAnswer,
  type ChatEventAnswer,
  chatEventAnswer,
  chatJid,
  chatStatusAnswer,
  chatsAnswer,
  choiceRequest,
  decisionRequest,
  type EntryAnswer,
  entriesAnswer,
  newEntryAnswer,
  newEntryRequest,
  questionAnswer,
  questionsAnswer,
  wholeApprovalAnswer,
} from './chat-answers.ts'
import { type ChatContext, groupOf, isWritable, nameOfChannel, writableChat } from './chat-context.ts'
import { fileRoutes, giveFiles } from './chat-files.ts'
import { ApiError } from './failure.ts'
import { sentEvents } from './live-stream.ts'
import { whole } from './requests.ts'
import { notFound, type Route, routesOf } from './route.ts'

const route = routesOf<ChatContext>('chats')

const ofChat = z.object({ jid: chatJid })
const inChat = ofChat.extend({ id: z.string().min(1).max(1000) })

/** The chats: the same routes for the terminal, over the daemon's socket, and for browsers. */
export const chatRoutes: readonly Route<ChatContext>[] = [
  route.get('/status', {
    summary: 'What whoever writes in the chats should know',
    role: 'viewer',
    answer: chatStatusAnswer,
    handle: ({ config, chats, warning }) => ({
      version,
      assistant: config.agents.assistant,
      warning: warning?.() ?? null,
      attachment_bytes: chats.files?.limit ?? 0,
    }),
  }),
  route.get('/chats', {
    summary: 'The chats, the main one first',
    role: 'viewer',
    answer: chatsAnswer,
    handle(context) {
      const { chats, store, config } = context
      const typing = new Set(chats.web.typingIn())
      const questions = Map.groupBy(store.questions.open(), ({ jid }) => jid)
      const approvals = Map.groupBy(store.approvals.open(), ({ jid }) => jid)
      return store
        .groups()
        .toSorted((a, b) => Number(b.main) - Number(a.main))
        .map(group => ({
          jid: group.jid,
          folder: group.folder,
          name: group.name,
          main: group.main,
          channel: nameOfChannel(context, group.jid),
          writable: isWritable(context, group.jid),
          trigger: group.main || !group.requires_trigger ? null : triggerOf(group, config.agents.assistant),
          typing: typing.has(group.jid),
          waiting: {
            questions: questions.get(group.jid)?.length ?? 0,
            approvals: approvals.get(group.jid)?.length ?? 0,
          },
        }))
    },
  }),
  route.get('/chats/:jid/messages', {
    summary: 'What was said in a chat, the newest, oldest first',
    role: 'viewer',
    params: ofChat,
    query: z.object({ limit: whole(1, 1000).optional() }),
    answer: entriesAnswer,
    handle(context, { params, query: { limit = 200 } }) {
      const { entries, more } = readHistory(
        context.store,
        groupOf(context, params.jid),
        limit,
        context.chats.approvals,
      )
      return { entries: entries.map(entryOf), more }
    },
  }),
  route.post('/chats/:jid/messages', {
    summary: 'Say something in a chat',
    role: 'approver',
    params: ofChat,
    body: newEntryRequest,
    answer: newEntryAnswer,
    status: 201,
    otherStatus: 200,
    async handle(context, { params, body, caller, request }) {
      const { text, id, attachments: ids = [], timezone } = body
      const { chats, store } = context
      const group = writableChat(context, params.jid)
      const { jid } = group
      if (timezone !== undefined)
        notePersonZone(store, { channel: chats.web.name, senderName: caller.name }, timezone)
      const isRepeated = store.agents.isKnown({ channel: chats.web.name, jid, externalId: id ?? null })
      const given = ids.length > 0 && !isRepeated ? await giveFiles(chats.files, group, ids) : undefined
      const received = await chats.web.post({
        jid,
        text,
        id,
        attachments: given?.attachments,
        senderName: caller.name,
        role: caller.role,
      })
      if (!received.ok) {
        given?.takeBack()
        throw new ApiError(received.error)
      }
      const key = received.id === undefined ? null : `in:${received.id}`
      return request.json({ key, status: received.status }, key === null ? 200 : 201)
    },
  }),
  route.get('/questions', {
    summary: 'What agents ask in any chat and nobody has answered yet, oldest first',
    role: 'viewer',
    answer: questionsAnswer,
    handle: context =>
      context.store.questions.open().map(row => ({
        ...cardOf(row),
        group: row.group,
        jid: row.jid,
        created_at: isoOf(row.createdAt),
        expires_at: isoOf(row.expiresAt),
        can_answer: isWritable(context, row.jid),
      })),
  }),
  route.post('/chats/:jid/questions/:id', {
    summary: 'Answer one question of a card',
    role: 'approver',
    params: inChat,
    body: choiceRequest,
    answer: questionAnswer,
    async handle(context, { params, body: { question, ...answer }, caller }) {
      const { jid } = writableChat(context, params.jid)
      const senderName = caller.name
      const chosen = await context.chats.web.choose({ jid, id: params.id, question, answer, senderName })
      if (!chosen.ok) throw new ApiError(chosen.error)
      return cardOf(chosen.question)
    },
  }),
  // Whichever channel the chat is of: whoever may decide sees the card here as well.
  route.get('/chats/:jid/approvals/:id', {
    summary: 'What a card asks to allow, with all that is in it',
    role: 'viewer',
    params: inChat,
    answer: wholeApprovalAnswer,
    handle(context, { params }) {
      const { store, config, chats } = context
      const chat = groupOf(context, params.jid)
      const row = byId(store.approvals, params.id)
      if (!row || !isShownIn(config, row, chat)) throw notFound('No approval with this id in this chat.')
      return wholeOf(config, row, chats.approvals)
    },
  }),
  route.post('/chats/:jid/approvals/:id', {
    summary: 'Decide what a card asks to allow',
    role: 'approver',
    params: inChat,
    body: decisionRequest,
    answer: approvalAnswer,
    async handle(context, { params, body: { decision, words }, caller }) {
      const { jid } = groupOf(context, params.jid)
      const senderName = caller.name
      const settled = await context.chats.web.decide({ jid, id: params.id, decision, words, senderName })
      if (!settled.ok) throw new ApiError(settled.error)
      return cardOfApproval(context.config, settled.approval)
    },
  }),
  ...fileRoutes,
  route.get('/events', {
    summary: 'What happens in the chats, as server-sent events; `Last-Event-ID` or `after` goes on',
    role: 'viewer',
    query: z.object({ after: z.string().max(64).optional() }),
    answer: chatEventAnswer,
    gives: 'text/event-stream',
    isStream: true,
    handle: ({ chats: { feed, liveTexts, web }, ...limits }, { query: { after }, request, caller }) =>
      sentEvents(
        request,
        caller,
        { ...limits, after },
        {
          log: feed,
          hello: complete => ({
            kind: 'hello',
            complete,
            typing: [...web.typingIn()],
            live_texts: [...liveTexts.all()],
          }),
          dataOf: event => JSON.stringify(eventOf(event)),
        },
      ),
  }),
]

const entryOf = ({ at, attachments, ...entry }: ChatEntry): EntryAnswer => ({
  ...entry,
  ...(attachments && { attachments: [...attachments] }),
  at: isoOf(at),
})

const eventOf = (event: ChatEvent): ChatEventAnswer =>
  event.kind === 'entry' ? { kind: 'entry', entry: entryOf(event.entry) } : event
