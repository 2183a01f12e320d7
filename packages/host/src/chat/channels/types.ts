import type { Refusal } from '@hatchway/protocol'
import type { Role } from '../../config/roles.ts'
import type { Attachment, KnownChatRow, MessageRow, QuestionRow, Quote } from '../../store/types.ts'
import type { ApprovalCard } from '../approvals/card.ts'
import type { Settled, Spoken } from '../approvals/types.ts'
import type { Pace, PaceStatus } from './pace.ts'

/** Somebody on a platform. `sender` is the platform's own lasting id, never a name that people choose. */
interface ByPerson {
  jid: string
  sender: string
  senderName: string
}

/** What somebody said in a chat. */
export interface Incoming extends ByPerson {
  /** the channel's own id of the message: one that came before is not taken twice */
  externalId?: string
  /** may be empty where files come along */
  text: string
  attachments?: readonly Attachment[] | undefined
  /** milliseconds since 1970 */
  at: number
  /** the assistant is meant, as the platform knows it: its account is mentioned, or its message is answered */
  mentioned?: boolean
  /** the thread or topic it was said in; answers go there */
  thread?: string | undefined
  /** the message it answers */
  quote?: Quoted | undefined
  /** what somebody who has signed in at this host may do; left out: they write on a platform */
  role?: Role | undefined
}

/** A message that somebody answers. Its words reach the agent only if it may read them. */
export interface Quoted extends Quote {
  /** the platform's lasting id of whoever wrote it; undefined: we did, or it is not known */
  sender?: string | undefined
}

/** What became of it. `id` is undefined for a message that came before; one that is `used` answered or decided something. */
export type Received =
  | { ok: true; id: number | undefined; status: 'waiting' | 'context' | 'used' }
  | { ok: false; error: Refusal }

/** What somebody chose in the card of a question. */
export interface Choice extends ByPerson {
  /** of the card */
  id: string
  /** which of its questions, counted from 1 */
  question: number
  /** one of the options, counted from 1, or own words */
  answer: { option: number } | { text: string }
}

export type Chosen = { ok: true; question: QuestionRow } | { ok: false; error: Refusal }

/** What somebody decided in the card of something an agent is not to do without a person. */
export interface Ruling extends ByPerson, Spoken {
  /** of the card */
  id: string
}

/** Somebody changed what they had said, or took it back. */
export interface Changed extends ByPerson {
  /** of the message, as it was received */
  externalId: string
  /** what it says now; null: it was taken back */
  text: string | null
}

/** Somebody reacted to a message. */
export interface Reacted extends ByPerson {
  /** the platform's id of that message */
  to: string
  emoji: string
}

/** A chat that a channel knows. */
export interface KnownChat extends Pick<KnownChatRow, 'jid' | 'name' | 'isGroup'> {
  /** when somebody last said something there, where the platform tells; the host knows what it is given itself */
  lastActivity?: number | undefined
}

/** What a channel may tell the host. Each promise is fulfilled once it is stored, or refused: then the platform may be told. */
export interface ChannelHost {
  receive(message: Incoming): Promise<Received>
  /** somebody else may have been faster */
  choose(choice: Choice): Promise<Chosen>
  /** refused for somebody who may not, or too late */
  decide(ruling: Ruling): Promise<Settled>
  changed(change: Changed): Promise<void>
  reacted(reaction: Reacted): Promise<void>
  /** the chat is there, and has this name; whenever it is seen */
  knows(chat: KnownChat): void
  /** the platform has given a chat another id; its group goes along */
  moved(from: string, to: string): Promise<void>
  /** takes a file of a message that is about to be received; the refusal of one that is too large, or of a stranger's */
  takeFile(
    from: Pick<ByPerson, 'jid' | 'sender'>,
    file: { name: string; content: AsyncIterable<Uint8Array> },
  ): Promise<{ ok: true; attachment: Attachment } | { ok: false; error: Refusal }>
  /**
   * whether words of the chat's group may be shown to others than its people, such as in the name of an account; not if
   * its agent has read secrets
   */
  mayShowElsewhere(jid: string): boolean
  /** what the channel needs after a restart, such as how far it has read; undefined forgets it */
  recall(key: string): string | undefined
  remember(key: string, value: string | undefined): void
}

/** Which piece of a message that was too long for the channel; the first of one where it was not. */
export interface Part {
  number: number
  of: number
  /** the same each time this part is tried: for platforms that drop what they have seen */
  key: string
}

/** What people can press, and what has become of it. */
export type Card =
  | { kind: 'question'; card: { id: string } & Pick<QuestionRow, 'questions' | 'answers' | 'status'> }
  | { kind: 'approval'; card: ApprovalCard }

/** What an agent says. */
export interface Outgoing extends MessageRow {
  /** buttons for people who see them, on channels that show cards */
  card?: Card | undefined
}

/** A message of ours, on the platform. */
export interface Delivered {
  jid: string
  thread?: string | undefined
  /** what `send` returned for its last part */
  id: string
}

/** What a person does on the platform's own app before it lets us in. */
export interface Confirmation {
  /** `qr`: a text to scan as a QR code; `code`: a text to type */
  kind: 'qr' | 'code'
  value: string
}

export interface ChannelStatus {
  isConnected: boolean
  /** milliseconds since 1970: since when it is, or is not */
  since: number
  /** undefined: nothing has gone wrong since the last connection */
  lastError?: string | undefined
  /** messages are held back until then, as the platform has asked for it */
  limitedUntil?: number | undefined
  /** what the account may say in all its chats together, and who waits for it */
  pace?: PaceStatus | undefined
  /** the channel waits for a person; the value changes from time to time, and is for the operator alone */
  confirm?: Confirmation | undefined
}

/** A way to people. `send` is fulfilled when the message is delivered, and rejected when it has to be tried again. */
export interface Channel {
  name: string
  /** whether the chat is one of this channel's */
  reaches(jid: string): boolean
  /** UTF-16 units in one message, at least 2; longer ones are split before `send` */
  messageLimit: number
  /** shows `sender` in its own way; for any other the name is put before the text */
  showsSender?: boolean
  /** people see cards, and see them change; on any other the outcome is told */
  showsCards?: boolean
  /** chats that nobody has registered may ask to be let in */
  pairs?: boolean
  /** how much its account may say in all chats together: no message is sent before its turn; left out: there is no limit */
  pace?: Pace
  /** why it neither receives nor delivers; undefined: it does */
  problem?(): string | undefined
  status?(): ChannelStatus
  /** begins to receive, first of all what was said since it last did; must not wait for the platform */
  connect?(host: ChannelHost): Promise<void>
  /** a text as the result is the platform's id of what was delivered; files go along with the last part */
  send(message: Outgoing, part: Part): Promise<unknown>
  /** changes what was delivered */
  edit?(delivered: Delivered, message: Outgoing): Promise<void>
  /** the chats that there are, where the platform can list them; others are known from what is said in them */
  chats?(): Promise<readonly KnownChat[]>
  /** shows, or no longer shows, that somebody is writing */
  typing?(jid: string, on: boolean, thread?: string): void
  disconnect?(): Promise<void>
}

/** Why a message was not delivered, where the platform has said more than that. */
export class DeliveryError extends Error {
  override name = 'DeliveryError'
  /** try again after this; it does not count as an attempt */
  readonly retryAfterMs: number | undefined
  /** there is no use in trying again */
  readonly isFinal: boolean
  constructor(message: string, options: { retryAfterMs?: number; isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.retryAfterMs = options.retryAfterMs
    this.isFinal = options.isFinal === true
  }
}
