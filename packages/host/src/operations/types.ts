import type { CommandType, Group, Outcome, Payload, ReplyAddress } from '@hatchway/protocol'
import type { GuardRules, Traits } from '../guard/guard.ts'
import type { Catalogue } from '../services/catalogue.ts'
import type { RequestRow } from '../store/service-types.ts'
import type { Transaction } from '../store/types.ts'

/** Who asks. A group is known by the directory its file lay in; an operator by being on the host. */
export type Actor = { kind: 'group'; group: Group } | { kind: 'operator' }

/** What has to happen on disk once the transaction is durable. Doing one of them twice does no harm. */
export type Effect =
  | { kind: 'group_added'; folder: string }
  | { kind: 'group_removed'; folder: string }
  | { kind: 'tasks_changed'; folder: string }
  | { kind: 'groups_changed' }
  | { kind: 'message_queued' }
  | { kind: 'todos_changed'; folder: string }
  | { kind: 'request_stored'; request: RequestRow }
  | { kind: 'request_over'; seq: number; outcome: Outcome }

/** What requests to services and to people are judged by. */
export interface ServiceRules {
  catalogue: Catalogue
  /** how long people may take to answer a question */
  questionMs: number
}

export interface OperationContext {
  transaction: Transaction
  actor: Actor
  /** the claim's number: unique, rising, usable as an id */
  seq: number
  now: Date
  timezone: string
  limits: { openTasks: number; openRequests: number }
  /** left out: there are none here */
  services?: ServiceRules | undefined
  /** the command's number in the journal, and where an answer that follows goes; left out: it came in no file */
  request?: { seq: number; reply: ReplyAddress | null } | undefined
  /** left out: nothing is guarded here */
  guard?: GuardRules | undefined
  /** whoever had to look at it has, and it may happen */
  isReleased?: boolean
  effect(effect: Effect): void
}

/** What a command acts on, for the permission table: a group's folder, a chat outside every group, or the host. */
export type Target = { folder: string } | { jid: string } | 'host'

/**
 * One command: what it would act on, and what it does. `target` answers with an outcome if there is nothing to act
 * on; `execute` runs only when the permission table has said yes.
 */
export interface Operation<T extends CommandType> {
  type: T
  target(payload: Payload<T>, context: OperationContext): Target | Outcome
  /** what the guard has to know of it; left out, or undefined: it stays within the group */
  traits?(payload: Payload<T>, context: OperationContext): Traits | undefined
  /** null: it is stored, and the answer follows */
  execute(payload: Payload<T>, context: OperationContext): Outcome | null
}
