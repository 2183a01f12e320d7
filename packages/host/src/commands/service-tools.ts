import type { Group, JsonSchema, Outcome, ServiceListing } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Dataset } from '../guard/guard.ts'
import type { TrustLabels } from '../guard/labels.ts'
import type { Transaction } from '../store/types.ts'
import type { Effect } from './effects.ts'

/** Which groups may use a tool. */
export type Allowed = 'all' | 'main' | readonly string[]

/** How far something has come that takes its time. */
export interface Step {
  progress: number
  total?: number
  message?: string
}

/** What a handler is given besides its arguments. Who asks is the directory's word, not the request's. */
export interface ServiceContext {
  group: Readonly<Pick<Group, 'folder' | 'jid' | 'name' | 'main'>>
  requestId: string
  /** aborted when the time is up, the request is taken back, or the host stops */
  signal: AbortSignal
  /** told to an agent that wants to know; as often as you like */
  progress(step: Step): void
  log: Logger
  timezone: string
}

/** What a tool that is done within the command's own commit is given. It must be quick, and cannot wait. */
export interface InstantContext {
  transaction: Transaction
  group: Group
  now: Date
  effect(effect: Effect): void
}

/** The tool's own refusal, with a code and words for the agent; anything else that is thrown is a failure. */
export type Checked = { ok: true; input: unknown } | { ok: false; message: string }

interface ToolBase {
  name: string
  /** whose tool it is: `memory`, `calendar`, `mcp:github` */
  service: string
  title: string
  description: string
  inputSchema: JsonSchema
  outputSchema?: JsonSchema
  annotations: ServiceListing['annotations']
  /** an object of facts, or the result of an MCP tool */
  answers: ServiceListing['answers']
  groups: Allowed
  labels: TrustLabels
  /** tells it from another one that takes its name later, such as that of another program; rules are for this one only */
  origin?: string
  /** stored data that it reads or writes: what a tainted agent has written taints who reads it */
  dataset?: Dataset
  check(input: Readonly<Record<string, unknown>>): Checked
}

/** A tool that may take its time: the request is stored, asked beside everything else, and answered when it is done. */
export interface LaterTool extends ToolBase {
  kind: 'later'
  /** whether it can be asked again after a restart in the middle without harm */
  repeatable: boolean
  timeoutMs: number
  /** the largest answer, as JSON */
  answerBytes: number
  call(input: unknown, context: ServiceContext): Promise<unknown> | unknown
}

/** What is asked for an answer that follows. */
export type Asked = Pick<
  LaterTool,
  'name' | 'service' | 'repeatable' | 'timeoutMs' | 'answerBytes' | 'annotations'
> & {
  call(input: unknown, context: WorkContext): Promise<unknown> | unknown
}

/** What work of the host's own is given: also the request's number, by which it knows what it began before a restart. */
export interface WorkContext extends ServiceContext {
  seq: number
}

/**
 * What a command would be done with, where the command itself does not say: files by their content, commits by their
 * ids. People are shown it, and the work is given it again, as `approved`, to do exactly that or nothing.
 */
export interface Evidence {
  fields: Readonly<Record<string, unknown>>
  /** found in what is not shown, such as a file */
  secret?: { kind: string; where: string } | undefined
}

/**
 * Work of the host's own that takes its time, for a command that was permitted and, where it had to be, released. It
 * answers with facts, or throws a `ServiceRefusal`.
 */
export interface Work {
  name: string
  /** whether it finds out by itself how far it came before a restart; otherwise it is answered with `interrupted` */
  repeatable: boolean
  timeoutMs: number
  call(input: unknown, context: WorkContext): Promise<object>
  /** before anybody is asked; throws a `ServiceRefusal` for what would be refused in any case */
  evidence?(input: unknown, context: EvidenceContext): Promise<Evidence | undefined>
}

export interface EvidenceContext {
  group: Pick<Group, 'folder' | 'jid'>
  signal: AbortSignal
}

/** A tool that is done in the same commit as its command: once, or not at all. */
export interface InstantTool extends ToolBase {
  kind: 'instant'
  perform(input: unknown, context: InstantContext): Outcome
}

export type ServiceTool = LaterTool | InstantTool

/** Whoever has tools to offer. */
export interface Service {
  name: string
  /** as they are now */
  tools(): readonly ServiceTool[]
  /** services that come and go: people are shown these in its place, and agents get their tools */
  members?(): readonly Service[]
  /** begins, in the background; `changed` tells that `tools()` or `state()` is another */
  start?(context: { changed(): void; log: Logger }): Promise<void>
  stop?(): Promise<void>
  /** for people: whether it can be used, and why not */
  state?(): { ok: boolean; text: string }
}

/** Where a command finds the tool it names. */
export interface ToolCatalogue {
  find(name: string): ServiceTool | undefined
}

/** Folders are told apart without case, as everywhere. */
export const isAllowed = (allowed: Allowed, group: Pick<Group, 'folder' | 'main'>): boolean => {
  if (allowed === 'all') return true
  if (allowed === 'main') return group.main
  return allowed.some(folder => folder.toLowerCase() === group.folder.toLowerCase())
}
