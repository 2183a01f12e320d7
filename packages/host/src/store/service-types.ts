import type { Outcome, Payload, ReplyAddress, Todo } from '@hatchway/protocol'
import type { NewIncoming } from './agent-types.ts'
import type { Size } from './connection.ts'

/**
 * waiting    stored, nobody has begun
 * running    a service that must not be asked twice has begun
 * answered   the answer is durable and has to be placed
 * placed     it lies, or lay, in the group's directory; only kept because it is large
 */
type RequestStatus = 'waiting' | 'running' | 'answered' | 'placed'

/** A request whose answer follows. */
export interface RequestRow {
  /** the command's number in the journal */
  seq: number
  group: string
  /** asked of a service, of people, work of the host's own, or a command that somebody has to look at first */
  kind: 'service' | 'question' | 'held' | 'work'
  tool: string
  input: Record<string, unknown>
  /** null: nobody waits for it */
  reply: ReplyAddress | null
  status: RequestStatus
  outcome: Outcome | null
  createdAt: number
  expiresAt: number
}
export type NewRequest = Omit<RequestRow, 'status' | 'outcome'>

interface RequestAnswer {
  seq: number
  outcome: Outcome
}

export interface RequestStore {
  /** whatever is not placed yet, oldest first */
  unfinished(): readonly RequestRow[]
  /** durable before it returns: a service that must not be asked twice is about to be asked */
  begin(seqs: readonly number[]): void
  /** which of them were still open: a request is answered once */
  answer(answers: readonly RequestAnswer[], at: number): ReadonlySet<number>
  /** nothing more is to be done for them */
  placed(seqs: readonly number[]): void
  /** forgets large answers that were placed before this time; whether there may be more */
  prune(before: number): boolean
}

export interface QuestionAnswer {
  answer: string
  /** counted from 1, where one of the options was chosen */
  option: number | null
  by: string
}

type QuestionStatus = 'open' | 'answered' | 'expired' | 'withdrawn'

/** What people were asked. `answers` has one place for each question. */
export interface QuestionRow {
  /** of the request that asks */
  seq: number
  group: string
  jid: string
  /** the message that tells people of it */
  messageId: number
  questions: Payload<'ask_user'>['questions']
  answers: (QuestionAnswer | null)[]
  status: QuestionStatus
  createdAt: number
  expiresAt: number
  closedAt: number | null
}

export interface QuestionStore {
  question(seq: number): QuestionRow | undefined
  byMessage(messageId: number): QuestionRow | undefined
  /** the open ones of a chat, oldest first; of all chats where none is named */
  open(jid?: string): readonly QuestionRow[]
  /** what its request has come to, where that is known */
  outcome(seq: number): Outcome | null
  /**
   * Keeps its answers and its status, in one commit with the message that changed it. The message's id; undefined
   * where there is none, or where it came before and so changes nothing.
   */
  update(question: QuestionRow, said?: NewIncoming): number | undefined
}

/** Inside one transaction. */
export interface ServiceTransaction {
  insertRequest(request: NewRequest): void
  openRequestSize(folder: string): Size
  /** one that is not answered yet */
  openRequest(folder: string, requestId: string): RequestRow | undefined
  /** takes one out that is not answered yet, as it is about to become something else */
  removeRequest(seq: number, kind: RequestRow['kind']): RequestRow | undefined
  /** whether it was still open */
  answerRequest(seq: number, outcome: Outcome, at: number): boolean

  insertQuestion(question: QuestionRow): void

  todos(folder: string): readonly Todo[]
  insertTodo(folder: string, todo: Todo): void
  updateTodo(folder: string, todo: Todo, doneAt: number | null): void
}
