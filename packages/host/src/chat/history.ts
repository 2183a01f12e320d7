import type { Stretch } from '../store/connection.ts'
import type { Attachment, IncomingRow, MessageRow, QuestionRow, Store } from '../store/types.ts'
import type { ApprovalCard } from './approvals/card.ts'
import type { Approvals } from './approvals/types.ts'
import { withoutInternal } from './channels/internal.ts'

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

/** Whether there is anything of it to show: a message that was all `<internal>` is not, and what changes another is seen there. */
export const isShown = ({ kind, text, attachments }: ChatEntry): boolean =>
  kind !== 'edit' && kind !== 'progress' && (text.trim() !== '' || attachments !== undefined)

/** Not more than this of a chat is read at once: a message may hold a megabyte. */
const mostCharacters = 2_000_000
/** How far back the outbox is searched for what was said in one chat. */
const searched = 20_000

/** The latest entries of a chat, oldest first. */
export function readHistory(
  store: Store,
  { jid, folder }: { jid: string; folder: string },
  limit: number,
  approvals?: Pick<Approvals, 'cardIn'>,
): { entries: ChatEntry[]; more: boolean } {
  const size = { jid, limit, characters: mostCharacters }
  const said = store.latestMessages({ ...size, within: searched })
  const heard = store.agents.latestIncoming({ ...size, group: folder })
  // Where one side is cut short, the other is too: there are no gaps.
  const from = Math.max(beginning(said), beginning(heard))
  const entries = [
    ...said.rows.map(row => entryOfMessage(row, cardsIn(store, approvals, row))).filter(isShown),
    ...heard.rows.map(entryOfIncoming),
  ]
    .filter(({ at }) => at >= from)
    .sort((a, b) => a.at - b.at || (a.direction === b.direction ? 0 : a.direction === 'in' ? -1 : 1))
  return { entries: entries.slice(-limit), more: said.more || heard.more || entries.length > limit }
}

const beginning = ({ rows: [first], more }: Stretch<{ createdAt: number }>): number =>
  more && first ? first.createdAt : 0
