import type { Approvals } from '../guard/approvals/approvals.ts'
import type { ApprovalCard } from '../guard/approvals/card.ts'
import type { IncomingRow } from '../store/agent-types.ts'
import type { Attachment } from '../store/file-types.ts'
import type { QuestionRow } from '../store/service-types.ts'
import type { MessageRow, Store } from '../store/types.ts'
import { withoutInternal } from './internal.ts'

/** One thing said in a chat, by whomever. */
export interface ChatEntry {
  /** `in:7` or `out:7`: what people said and what agents said are counted apart */
  key: string
  direction: 'in' | 'out'
  jid: string
  kind: MessageRow['kind']
  /** a name to show; null: the agent under its usual name */
  sender: string | null
  text: string
  /** milliseconds since 1970 */
  at: number
  status: IncomingRow['status'] | MessageRow['status']
  error: string | null
  attachments?: readonly ShownFile[]
  /** the card of a message that asks something, as it is now */
  question?: Card
  /** the card of a message that asks to allow something, as it is now */
  approval?: ApprovalCard
}

/** Where an agent finds it is for the agent. */
type ShownFile = Omit<Attachment, 'path'>

const filesOf = ({ attachments }: { attachments?: readonly Attachment[] | undefined }) =>
  attachments && { attachments: attachments.map(({ path: _, ...file }) => file) }

export type Card = { id: string } & Pick<QuestionRow, 'questions' | 'answers' | 'status'>

export const entryOfIncoming = (row: IncomingRow): ChatEntry => ({
  key: `in:${row.id}`,
  direction: 'in',
  jid: row.jid,
  kind: 'text',
  sender: row.senderName,
  text: row.text,
  at: row.createdAt,
  status: row.status,
  error: null,
  ...filesOf(row),
})

export const cardOf = ({ seq, questions, answers, status }: QuestionRow): Card => ({
  id: String(seq),
  questions,
  answers,
  status,
})

export const entryOfMessage = (row: MessageRow, { question, approval }: Cards = {}): ChatEntry => ({
  key: `out:${row.id}`,
  direction: 'out',
  jid: row.jid,
  kind: row.kind,
  sender: row.sender,
  text: row.kind === 'text' ? withoutInternal(row.text) : row.text,
  at: row.createdAt,
  status: row.status,
  error: row.error,
  ...filesOf(row),
  ...(question && { question: cardOf(question) }),
  ...(approval && { approval }),
})

/** What a message asks, if it asks something. */
export interface Cards {
  question?: QuestionRow | undefined
  approval?: ApprovalCard | undefined
}

export const cardsIn = (
  { questions }: Pick<Store, 'questions'>,
  approvals: Pick<Approvals, 'cardIn'> | undefined,
  message: MessageRow,
): Cards => ({
  question: message.kind === 'question' ? questions.byMessage(message.id) : undefined,
  approval: approvals?.cardIn(message),
})

/** Whether there is anything of it to show: a message that was all `<internal>` is not. */
export const isShown = ({ text, attachments }: ChatEntry): boolean =>
  text.trim() !== '' || attachments !== undefined

/** How far back the outbox is searched for what was said in one chat. */
const searched = 20_000

/** The latest entries of a chat, oldest first. */
export function readHistory(
  store: Store,
  chat: { jid: string; folder: string },
  limit: number,
  approvals?: Pick<Approvals, 'cardIn'>,
): { entries: ChatEntry[]; more: boolean } {
  const said = latest(
    span => store.messages({ after: Math.max(0, store.lastMessageId() - span) }),
    Math.min(searched, store.lastMessageId()),
    row => row.jid === chat.jid,
    limit + 1,
  )
  const end = lastIncoming(store, chat.folder)
  const heard = latest(
    span => store.agents.incoming({ group: chat.folder, after: Math.max(0, end - span) }),
    end,
    row => row.jid === chat.jid,
    limit + 1,
  )
  const entries = [
    ...said.map(row => entryOfMessage(row, cardsIn(store, approvals, row))).filter(isShown),
    ...heard.map(entryOfIncoming),
  ].sort((a, b) => a.at - b.at || (a.direction === b.direction ? 0 : a.direction === 'in' ? -1 : 1))
  return { entries: entries.slice(-limit), more: entries.length > limit }
}

/** The end of a table is looked through in growing steps: ids rise, and the chat's rows lie among others'. */
function latest<T>(
  read: (span: number) => readonly T[],
  end: number,
  isOurs: (row: T) => boolean,
  count: number,
): T[] {
  for (let span = Math.min(end, count * 4); ; span = Math.min(end, span * 4)) {
    const rows = read(span).filter(isOurs)
    if (rows.length >= count || span >= end) return rows.slice(-count)
  }
}

/** The store tells what comes after an id; where that ends is found by trying. */
function lastIncoming(store: Store, group: string): number {
  const next = (after: number) => store.agents.incoming({ group, after, limit: 1 })[0]?.id
  let known = 0
  let none = Number.POSITIVE_INFINITY
  for (let step = 1; none - known > 1; ) {
    const at = none === Number.POSITIVE_INFINITY ? known + step : Math.floor((known + none) / 2)
    const found = next(at - 1)
    if (found === undefined) none = at
    else known = Math.max(found, at)
    step *= 2
  }
  return known
}
