import { createHash } from 'node:crypto'
import { type AnyCommand, anyCommandSchema, type Group, type Outcome } from '@hatchway/protocol'
import { type Refused, refused } from '../base/outcome.ts'
import type { Action, Gate, Taint } from '../base/taint.ts'
import { folderContext, taskContext } from '../store/contexts.ts'
import type { RequestRow, Transaction } from '../store/types.ts'
import { gates, type Reach, seenIn } from './gates.ts'
import type { TrustLabels } from './labels.ts'
import { mayHoldSecrets } from './secrets/prefilter.ts'

export interface Dataset {
  name: string
  access: 'read' | 'write'
}

/** What a command is to the guard. */
export interface Traits {
  action: Omit<Action, 'group'>
  /** what of it is free text; ids and addresses look like secrets, and would be held up each time. Left out: all of it */
  text?: Record<string, unknown> | undefined
  reach: Reach
  /** what the context has seen once it has happened */
  reads: Taint
  /** a label that rules it out */
  forbidden?: string | undefined
  /** stored data that it reads or writes: what was written tainted is read tainted */
  dataset?: Dataset | undefined
  /** a person may allow it whatever is in it */
  tool?: { service: string; labels: TrustLabels } | undefined
}

export interface GuardRules {
  /** whether the group's folder holds secrets from the start */
  containsSecrets(folder: string): boolean
  /** groups that can write where this one reads, beside their own files; left out: none */
  writersFor?(folder: string): readonly string[]
  /** whether its agent is in a sandbox of ours without a network, where no command can bring anything in */
  isOffline(folder: string): boolean
  /** how long a person may take to decide */
  approvalMs: number
}

/** Why an action is not simply done. */
export interface Held {
  gate: Exclude<Gate, 'block'>
  taint: Taint
  action: Action
  command: AnyCommand
  /** of a plugin's command: its name and version */
  provider?: string | undefined
  /** the run that asked, if there was one */
  runId?: string | undefined
  /** what a standing approval of its tool is bound to; left out: there can be none */
  standing?: string | undefined
  /** what the command does not say and was looked up for whoever decides; it is in the action's payload, too */
  evidence?: Readonly<Record<string, unknown>> | undefined
}

const clean: Taint = { corrupted: false, secret: false }
const joined = (a: Taint, b: Taint): Taint => ({
  corrupted: a.corrupted || b.corrupted,
  secret: a.secret || b.secret,
})

/** What a command's context has seen: now, and when it was held, if it was. */
export const seenBy = (
  folder: string,
  rules: GuardRules,
  { transaction, seen = clean }: GuardContext,
): Taint => joined(taintOf(transaction.taint, rules, folder), seen)

/** What a group's files hold. */
export const taintOf = (
  stored: Transaction['taint'],
  rules: Pick<GuardRules, 'containsSecrets' | 'writersFor'>,
  folder: string,
): Taint =>
  [folder, ...(rules.writersFor?.(folder) ?? [])]
    .map(one => joined(stored(one, folderContext), { corrupted: false, secret: rules.containsSecrets(one) }))
    .reduce(joined, clean)

/** Allowed: it is done now. Held: somebody has to look at it first, or to decide. */
export type Judgement =
  | { kind: 'allow' }
  | { kind: 'deny'; outcome: Outcome }
  | { kind: 'hold'; held: Omit<Held, 'command'> }

/** What the guard has to know besides the command: the transaction it is decided in, when, and in which run. */
export interface GuardContext {
  transaction: Pick<Transaction, 'taint' | 'addTaint' | 'audit' | 'task'>
  now: Date
  /** what its context had seen when it was held: that may be another one since */
  seen?: Taint | undefined
}

/** The step between "may this group do that" and doing it. */
export function judge(
  traits: Traits,
  group: Group,
  rules: GuardRules,
  context: GuardContext & {
    requestId: string | null
    runId: string | undefined
    provider: string | undefined
  },
): Judgement {
  const { transaction, now } = context
  const taint = taintOf(transaction.taint, rules, group.folder)
  const action: Action = { ...traits.action, group: group.folder }
  const note = (gate: Gate, outcome: string, reason: string) =>
    transaction.audit({
      at: now.getTime(),
      group: group.folder,
      actor: 'agent',
      decidedBy: 'gate',
      action: action.name,
      summary: action.summary,
      taint,
      gate,
      outcome,
      reason,
      requestId: context.requestId,
    })
  if (traits.forbidden !== undefined) {
    note('block', 'denied', `forbidden by its label ${traits.forbidden}`)
    return { kind: 'deny', outcome: ruledOut(traits) }
  }
  const gate = gates[seenIn(taint)][traits.reach]
  if (gate === 'block') {
    note(gate, 'denied', 'by the table of gates')
    return deny(`${action.name} is not done after what this conversation has read.`)
  }
  // What goes out is searched for secrets first, which takes a moment where there can be any.
  const goesOut = traits.reach === 'sink' || traits.reach === 'both'
  if (gate === 'allow' && !(goesOut && mayHoldSecrets(traits.text ?? action.payload))) {
    apply(traits, group.folder, taint, transaction, now.getTime())
    if (traits.reach !== 'local') note(gate, 'allowed', 'by the table of gates')
    return { kind: 'allow' }
  }
  const { runId, provider } = context
  return { kind: 'hold', held: { gate, taint, action, runId, provider, standing: standingOf(traits, taint) } }
}

/**
 * What a person's word for a tool is bound to. What must not get out is never let out through a known way out without a
 * look at each time.
 */
export const standingOf = ({ action, tool }: Traits, { secret }: Taint): string | undefined => {
  if (!tool) return undefined
  const { public_source, secret_data, public_sink, dangerous_writes } = tool.labels
  if (public_sink === 'yes' && secret) return undefined
  const labels = [public_source, secret_data, public_sink, dangerous_writes]
  return JSON.stringify([tool.service, action.name, action.origin, labels])
}

export const ruledOut = ({ action, forbidden }: Traits): Refused =>
  refused('denied', `${action.name} is forbidden here by its label ${forbidden}.`)

const deny = (message: string): Judgement => ({ kind: 'deny', outcome: refused('denied', message) })

/** What it does to what the context has seen. */
function apply(
  traits: Traits,
  folder: string,
  taint: Taint,
  transaction: GuardContext['transaction'],
  at: number,
): void {
  const { dataset, reads, action } = traits
  // The prefix is in the store of every installation.
  const context = `shelf:${dataset?.name}`
  const taken = dataset?.access === 'read' ? transaction.taint(folder, context) : clean
  transaction.addTaint(folder, folderContext, joined(reads, taken), action.name, at)
  if (dataset?.access === 'write') transaction.addTaint(folder, context, taint, action.name, at)
}

/** It may happen after all: what it reads counts from now on. */
export const applyReleased = (
  traits: Traits,
  folder: string,
  rules: GuardRules,
  context: GuardContext,
): void => apply(traits, folder, seenBy(folder, rules, context), context.transaction, context.now.getTime())

/** What a held command was, read back from the store with the same care as from a file. */
export function heldIn(request: RequestRow): Held | undefined {
  const { gate, taint, action, command, runId, provider, standing, evidence } = request.input
  const parsed = anyCommandSchema.safeParse(command)
  if (!parsed.success || !isTaint(taint) || !isAction(action)) return undefined
  return {
    gate: gate === 'allow' || gate === 'inspect' ? gate : 'ask',
    taint,
    action,
    command: parsed.data,
    runId: typeof runId === 'string' ? runId : undefined,
    provider: typeof provider === 'string' ? provider : undefined,
    standing: typeof standing === 'string' ? standing : undefined,
    evidence: isObject(evidence) ? evidence : undefined,
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isTaint = (value: unknown): value is Taint =>
  typeof value === 'object' && value !== null && 'corrupted' in value && 'secret' in value

const isAction = (value: unknown): value is Action =>
  typeof value === 'object' && value !== null && 'name' in value && 'summary' in value && 'payload' in value

/** The same group wanting the same thing with exactly the same. */
export const digestOf = ({ name, payload, origin }: Pick<Action, 'name' | 'payload' | 'origin'>): string =>
  createHash('sha256')
    .update(JSON.stringify([name, canonical(payload), ...(origin === undefined ? [] : [origin])]))
    .digest('base64url')

/**
 * A person's word for a tool, whatever it is called with: for the service it is of and where that has it from, for its
 * labels, and for what the conversation had read then. If anything of it is another later, a person is asked.
 */
export const standingDigestOf = ({
  standing,
  taint,
}: Pick<Held, 'standing' | 'taint'>): string | undefined =>
  standing === undefined
    ? undefined
    : createHash('sha256')
        .update(JSON.stringify(['tool', standing, seenIn(taint)]))
        .digest('base64url')

/** Any rule under one of these lets it happen. A tool that was allowed after the worst is allowed after less. */
export const digestsOf = ({
  action,
  standing,
  taint,
}: Pick<Held, 'action' | 'standing' | 'taint'>): string[] => {
  const worse = [false, true].flatMap(corrupted =>
    [false, true].map(secret => joined(taint, { corrupted, secret })),
  )
  const ofTool = worse.map(seen => standingDigestOf({ standing, taint: seen }))
  return [...new Set([digestOf(action), ...ofTool])].filter(digest => digest !== undefined)
}

const canonical = (value: unknown): unknown => {
  // An object becomes a list of pairs; a list that looks like one must not be taken for it.
  if (Array.isArray(value)) return [0, ...value.map(canonical)]
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, canonical(inner)])
}

/** A task that a tainted context made runs tainted, whenever it does and whatever context it gets. */
export function noteTask(taskId: unknown, folder: string, rules: GuardRules, context: GuardContext): void {
  if (typeof taskId !== 'string') return
  const { transaction, now } = context
  // It counts where it runs, which may be another group's.
  const runs = transaction.task(taskId)?.group ?? folder
  transaction.addTaint(
    runs,
    taskContext(taskId),
    seenBy(folder, rules, context),
    'schedule_task',
    now.getTime(),
  )
}
