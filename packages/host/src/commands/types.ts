import type { CommandType, Group, HostJob, Outcome, Payload, ReplyAddress } from '@hatchway/protocol'
import type { Refused } from '../base/outcome.ts'
import type { Taint } from '../base/taint.ts'
import type { GuardRules, Traits } from '../guard/guard.ts'
import type { Who } from '../store/audit-types.ts'
import type { RequestRow } from '../store/service-types.ts'
import type { Transaction } from '../store/types.ts'
import type { ToolCatalogue } from './service-tools.ts'

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
  | { kind: 'context_reset'; folder: string }
  | { kind: 'run_finished'; folder: string; runId: string }
  /** once its answer lies there: whoever asked for it waits for that */
  | { kind: 'session_over'; folder: string; runId?: string | undefined }

/** What requests to services and to people are judged by. */
export interface ServiceRules {
  catalogue: ToolCatalogue
  /** how long people may take to answer a question */
  questionMs: number
}

/** What commands of the host's own need to know of the daemon they are given to. */
export interface HostRules {
  /** the run that the group's agent is in */
  runOf(folder: string): CurrentRun | undefined
  /** what work takes at the most, by its name; undefined: this host does not do it */
  workMs(name: string): number | undefined
  /** why this host cannot be deployed, if so */
  deployProblem?: string | undefined
  jobs: JobRules | undefined
  /** whether the group has a worktree, and whether the end of a scheduled run merges it */
  worktree(folder: string): WorktreeRules | undefined
}

export interface WorktreeRules {
  mergesAtEnd: boolean
  pushes?: boolean
  repo?: string
  branch?: string
  policy?: 'merge' | 'branch'
  remote?: string | undefined
}

export interface CurrentRun {
  id: string
  kind: 'chat' | 'task'
  occurrenceId: string | null
  /** nobody but a deploy has called it so far */
  isByDeploy: boolean
}

/** What commands on the host may be scheduled. */
export interface JobRules {
  /** with the usual directory and user where it names none, or why it may not run as things are now */
  settle(job: HostJob): HostJob | Refused
}

/** What one group may have, in numbers and in bytes. */
interface Limits {
  openTasks: number
  openTaskBytes: number
  openRequests: number
  openRequestBytes: number
  /** of the large messages that are kept */
  messageBytes: number
}

export interface CommandContext {
  transaction: Transaction
  actor: Actor
  /** the claim's number: unique, rising, usable as an id */
  seq: number
  now: Date
  timezone: string
  limits: Limits
  /** left out: there are none here */
  services?: ServiceRules | undefined
  /** the command's number in the journal, and where an answer that follows goes; left out: it came in no file */
  request?: { seq: number; reply: ReplyAddress | null } | undefined
  /** left out: there is no daemon to do such things */
  host?: HostRules | undefined
  /** the group that an operator means */
  about?: Group | undefined
  /** left out: nothing is guarded here */
  guard?: GuardRules | undefined
  /** whoever had to look at it has, and it may happen */
  isReleased?: boolean
  releasedBy?: Who
  /** what its context had seen when it was held: that may be another one since */
  seen?: Taint
  /** the run that asked for what is released now: another one may go on since */
  heldIn?: string | undefined
  /** what was decided about, as whoever decided it was shown it */
  shown?: { digest: string; evidence: Readonly<Record<string, unknown>> | undefined } | undefined
  effect(effect: Effect): void
}

/** What a command acts on, for the permission table: a group's folder, a chat outside every group, or the host. */
export type Target = { folder: string } | { jid: string } | 'host'

/**
 * One command: what it would act on, and what it does. `target` answers with an outcome if there is nothing to act
 * on; `execute` runs only when the permission table has said yes.
 */
export interface CommandDefinition<T extends CommandType> {
  type: T
  target(payload: Payload<T>, context: CommandContext): Target | Outcome
  /** what the guard has to know of it; left out, or undefined: it stays within the group */
  traits?(payload: Payload<T>, context: CommandContext): Traits | undefined
  /** null: it is stored, and the answer follows */
  execute(payload: Payload<T>, context: CommandContext): Outcome | null
}
