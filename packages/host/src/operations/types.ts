import type { CommandType, Group, Outcome, Payload } from '@hatchway/protocol'
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

export interface OperationContext {
  transaction: Transaction
  actor: Actor
  /** the claim's number: unique, rising, usable as an id */
  seq: number
  now: Date
  timezone: string
  limits: { openTasks: number }
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
  execute(payload: Payload<T>, context: OperationContext): Outcome
}
