import type { Group, HostOffer, Outcome, ReplyAddress } from '@hatchway/protocol'
import type { z } from 'zod'
import type { Taint } from '../base/taint.ts'
import type { GuardRules, Traits } from '../guard/guard.ts'
import type { Transaction, Who } from '../store/types.ts'
import type { Effect } from './effects.ts'
import type { ToolCatalogue } from './service-tools.ts'

/** Who asks. A group is known by the directory its file lay in; an operator by being on the host. */
export type Actor = { kind: 'group'; group: Group } | { kind: 'operator' }

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
  /** work that has to be done before the group's scheduled run counts as finished, and what the guard judges it by */
  finishing(folder: string): { work: string; traits: Traits } | undefined
  /** whether a shell command is harmless for a group whose agent has no network, although nothing else says so */
  isHarmless(folder: string, command: string): boolean
}

export interface CurrentRun {
  id: string
  kind: 'chat' | 'task'
  occurrenceId: string | null
  /** nobody but a deploy has called it so far */
  isByDeploy: boolean
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
  /** of a plugin's command that is released now: the plugin and its version when it was held */
  provider?: string | undefined
  /** the run that asked for what is released now: another one may go on since */
  heldIn?: string | undefined
  /** what was decided about, as whoever decided it was shown it */
  shown?: { digest: string; evidence: Readonly<Record<string, unknown>> | undefined } | undefined
  effect(effect: Effect): void
}

/** What a command acts on, for the permission table: a group's folder, a chat outside every group, or the host. */
export type Target = { folder: string } | { jid: string } | 'host'

/** How far a right reaches: everywhere, the group's own chat and tasks, or nowhere. */
type Reach = 'any' | 'own' | 'never'

/**
 * One command: who may use it, what it would act on, what the guard has to know of it, and what it does, side by side.
 * Nothing of it is optional, so that nobody can forget a permission or the guard.
 */
export interface CommandDefinition<P = unknown> {
  type: string
  payload: z.ZodType<P>
  /** An operator, who sits on the host, needs none. */
  permission: { main: Reach; others: Reach }
  /** an outcome: there is nothing to act on */
  target(payload: P, context: CommandContext): Target | Outcome
  /** `local`: it stays within the group */
  guard(payload: P, context: CommandContext): Traits | 'local'
  /** whether the task it names in its answer is one that it wrote */
  writesTask?: boolean
  /** of a plugin's command: its name and version. What was held for another is not executed by this one. */
  provider?: string
  /** for a plugin's command: how agents that may use it see it among their tools */
  tool?: { title: string; description: string; timeoutMs?: number }
  /** what the group's agent is told of it, if this host does it for that group at this moment */
  offer?(group: Group): HostOffer | undefined
  /** runs only when permission and guard have said yes. null: it is stored, and the answer follows */
  execute(payload: P, context: CommandContext): Outcome | null
}

export const defineCommand = <P>(
  definition: { payload: z.ZodType<P> } & NoInfer<CommandDefinition<P>>,
): CommandDefinition<P> => definition

/** For commands that concern nobody but the group itself. */
export const local = () => 'local' as const
