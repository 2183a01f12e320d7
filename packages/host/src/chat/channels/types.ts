import type { Refusal } from '@hatchway/protocol'
import type { Attachment } from '../../store/file-types.ts'
import type { QuestionRow } from '../../store/service-types.ts'
import type { MessageRow } from '../../store/types.ts'
import type { Settled, Spoken } from '../approvals/approvals.ts'

/** What somebody said in a chat. */
export interface Incoming {
  jid: string
  /** the channel's own id of the message: one that came before is not taken twice */
  externalId?: string
  sender: string
  senderName: string
  /** may be empty where files come along */
  text: string
  attachments?: readonly Attachment[] | undefined
  /** milliseconds since 1970 */
  at: number
}

/** What became of it. `id` is undefined for a message that came before; one that is `used` answered or decided something. */
export type Received =
  | { ok: true; id: number | undefined; status: 'waiting' | 'context' | 'used' }
  | { ok: false; error: Refusal }

/** What somebody chose in the card of a question. */
export interface Choice {
  jid: string
  /** of the card */
  id: string
  /** which of its questions, counted from 1 */
  question: number
  /** one of the options, counted from 1, or own words */
  answer: { option: number } | { text: string }
  sender: string
  senderName: string
}

export type Chosen = { ok: true; question: QuestionRow } | { ok: false; error: Refusal }

/** What somebody decided in the card of something an agent is not to do without a person. */
export interface Ruling extends Spoken {
  jid: string
  /** of the card */
  id: string
  sender: string
  senderName: string
}

/** What a channel may tell the host. `receive` resolves once the message is stored, or refused. */
export interface ChannelHost {
  receive(message: Incoming): Promise<Received>
  /** resolves once the answer is stored, or refused: somebody else may have been faster */
  choose(choice: Choice): Promise<Chosen>
  /** resolves once it is decided, or refused: by somebody who may not, or too late */
  decide(ruling: Ruling): Promise<Settled>
}

/** Which piece of a message that was too long for the channel; the first of one where it was not. */
export interface Part {
  number: number
  of: number
}

/** A way to people. `send` resolves when the message is delivered and rejects when it has to be tried again. */
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
  /** begins to receive */
  connect?(host: ChannelHost): Promise<void>
  /** files go along with the last part */
  send(message: MessageRow, part: Part): Promise<void>
  /** shows, or no longer shows, that somebody is writing */
  typing?(jid: string, on: boolean): void
  disconnect?(): Promise<void>
}
