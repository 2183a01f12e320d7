import type {
  Approval,
  Attachment,
  ChatEvent,
  ChatStatus,
  Entry,
  QuestionCard,
  Room,
} from '@hatchway/host/api-types'
import { useSyncExternalStore } from 'react'
import { ask, change, messageOf } from '../../host/ask.ts'
import { chatEvents, feed } from '../../live/streams.ts'
import type { Choice } from '../../parts/question-card.tsx'

/**
 * The chats as far as this page knows them. It goes on hearing them while another page is shown, so that what nobody has
 * read yet can be counted.
 */
export interface Outgoing {
  id: string
  jid: string
  text: string
  files: Attachment[]
  failed: string | undefined
}

type LiveText = Extract<ChatEvent, { kind: 'live_text' }>

export interface ChatState {
  status: ChatStatus | undefined
  /** undefined: not known yet */
  rooms: readonly Room[] | undefined
  typing: ReadonlySet<string>
  /** what agents are writing and use, by chat; no messages yet */
  liveTexts: ReadonlyMap<string, Pick<LiveText, 'text' | 'tool'>>
  unread: ReadonlyMap<string, number>
  /** the chat that is shown */
  jid: string | undefined
  entries: ReadonlyMap<string, Entry>
  /** whether there are older messages than those */
  older: boolean
  isLoaded: boolean
  outgoing: ReadonlyMap<string, Outgoing>
  error: string | undefined
}

const shownAtMost = 200

const nothing: ChatState = {
  status: undefined,
  rooms: undefined,
  typing: new Set(),
  liveTexts: new Map(),
  unread: new Map(),
  jid: undefined,
  entries: new Map(),
  older: false,
  isLoaded: false,
  outgoing: new Map(),
  error: undefined,
}

let state = nothing
const watchers = new Set<() => void>()
/** what came while the chat was being read */
let arrived: Entry[] = []

function become(changes: Partial<ChatState>): void {
  state = { ...state, ...changes }
  for (const heard of watchers) heard()
}

const subscribe = (heard: () => void) => {
  watchers.add(heard)
  return () => watchers.delete(heard)
}
export const useChats = (): ChatState => useSyncExternalStore(subscribe, () => state)

const chatPath = (jid: string, rest = '') => `/api/chats/${encodeURIComponent(jid)}${rest}`
const without = <K, V>(map: ReadonlyMap<K, V>, key: K) => new Map([...map].filter(([each]) => each !== key))

async function loadStatus(): Promise<void> {
  become({ status: await ask<ChatStatus>('/api/status') })
}

async function loadRooms(): Promise<void> {
  const rooms = await ask<Room[]>('/api/chats')
  become({ rooms, typing: new Set(rooms.filter(room => room.typing).map(room => room.jid)) })
}

const countEveryMs = 500
let isToCount = false
/** However many cards change, what waits is counted again twice a second. */
function countAgain(): void {
  if (isToCount) return
  isToCount = true
  setTimeout(() => {
    isToCount = false
    loadRooms().catch(ignore)
  }, countEveryMs)
}

/** What waits for a person in a chat: whoever has only seen it has not answered it. */
export const cardsIn = ({ waiting }: Room): number => waiting.questions + waiting.approvals

/** How much in all chats is unread or waits. */
export const toSeeTo = ({ rooms = [], unread }: ChatState): number =>
  [...rooms.map(cardsIn), ...unread.values()].reduce((sum, each) => sum + each, 0)

async function loadEntries(): Promise<void> {
  const { jid } = state
  if (jid === undefined) return
  arrived = []
  try {
    const answer = await ask<{ entries: Entry[]; more: boolean }>(
      chatPath(jid, `/messages?limit=${shownAtMost}`),
    )
    if (jid !== state.jid) return
    const later = arrived.filter(entry => entry.jid === jid)
    const entries = new Map([...answer.entries, ...later].map(entry => [entry.key, entry]))
    become({ entries, older: answer.more, isLoaded: true, error: undefined })
  } catch (error) {
    if (jid === state.jid) become({ error: messageOf(error) })
  }
}

async function loadAll(): Promise<void> {
  await loadRooms()
  await loadEntries()
}

export function enterChat(jid: string): void {
  if (state.jid === jid) return
  become({
    jid,
    entries: new Map(),
    older: false,
    isLoaded: false,
    error: undefined,
    unread: without(state.unread, jid),
  })
  loadEntries()
}

/** Nobody looks at it any more: what is said there from now on is unread. */
export const leaveChat = (): void => become({ jid: undefined, entries: new Map(), isLoaded: false })

export function noteRead(): void {
  if (state.jid !== undefined && state.unread.has(state.jid)) {
    become({ unread: without(state.unread, state.jid) })
  }
}

function onEntry(entry: Entry): void {
  arrived.push(entry)
  if (arrived.length > shownAtMost) arrived.shift()
  const isCard = entry.question !== undefined || entry.approval !== undefined
  if (isCard) countAgain()
  if (entry.jid === state.jid) {
    const own =
      entry.direction === 'in'
        ? [...state.outgoing.values()].find(each => each.jid === entry.jid && each.text === entry.text)
        : undefined
    become({
      entries: new Map([...state.entries, [entry.key, entry]]),
      ...(own && { outgoing: without(state.outgoing, own.id) }),
    })
    if (document.visibilityState === 'visible') return
  }
  if (entry.direction === 'out' && !isCard) {
    become({ unread: new Map([...state.unread, [entry.jid, (state.unread.get(entry.jid) ?? 0) + 1]]) })
  }
}

function onEvent(event: ChatEvent): void {
  switch (event.kind) {
    case 'hello':
      become({
        typing: new Set(event.typing),
        liveTexts: new Map(event.live_texts.map(live => [live.jid, live])),
      })
      loadStatus().catch(ignore)
      if (!event.complete || state.rooms === undefined) loadAll().catch(ignore)
      return
    case 'entry':
      onEntry(event.entry)
      return
    case 'typing': {
      const typing = new Set(state.typing)
      if (event.on) typing.add(event.jid)
      else typing.delete(event.jid)
      become({ typing })
      return
    }
    case 'live_text':
      become({ liveTexts: withLiveText(state.liveTexts, event) })
      return
    case 'chats':
      loadAll().catch(ignore)
  }
}

function withLiveText(
  texts: ChatState['liveTexts'],
  { jid, from, text, tool }: LiveText,
): ChatState['liveTexts'] {
  const whole = (texts.get(jid)?.text ?? '').slice(0, from) + text
  return whole === '' && tool === null
    ? without(texts, jid)
    : new Map([...texts, [jid, { text: whole, tool }]])
}

/** The sign that there is no connection says it already, and the next hello brings it. */
const ignore = (): void => {}

export function startChats(): () => void {
  state = nothing
  const stops = [
    chatEvents.on(onEvent),
    // What has to stay on screen may have come, or be over.
    feed.on(event => {
      if (event.kind === 'changed' && event.what === 'status') loadStatus().catch(ignore)
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

/** What has become of a card. While events come, they bring it, in the order in which it happened. */
function showCard(key: string, card: { question: QuestionCard } | { approval: Approval }): void {
  const entry = state.entries.get(key)
  if (chatEvents.state() === 'connected' || !entry) return
  become({ entries: new Map([...state.entries, [key, { ...entry, ...card }]]) })
}

export async function choose(entry: Entry, id: string, question: number, choice: Choice): Promise<void> {
  showCard(entry.key, { question: await answerQuestion(entry.jid, id, question, choice) })
}

export const answerQuestion = (jid: string, id: string, question: number, choice: Choice) =>
  change<QuestionCard>('POST', chatPath(jid, `/questions/${encodeURIComponent(id)}`), { question, ...choice })

export const approvalPath = (entry: Entry, id: string) =>
  chatPath(entry.jid, `/approvals/${encodeURIComponent(id)}`)

export const showApproval = (key: string, approval: Approval): void => showCard(key, { approval })

export async function deliver(message: Outgoing): Promise<void> {
  become({ outgoing: new Map([...state.outgoing, [message.id, { ...message, failed: undefined }]]) })
  try {
    // Under the same id it is taken once, however often it has to be sent.
    const { text, id, files } = message
    const named = files.length > 0 ? { attachments: files.map(file => file.id) } : {}
    const { timeZone: timezone } = new Intl.DateTimeFormat().resolvedOptions()
    await change('POST', chatPath(message.jid, '/messages'), { text, id, timezone, ...named })
    become({ outgoing: without(state.outgoing, message.id) })
    if (chatEvents.state() !== 'connected') await loadEntries()
  } catch (error) {
    const failed = { ...message, failed: messageOf(error) }
    become({ outgoing: new Map([...state.outgoing, [message.id, failed]]) })
  }
}
