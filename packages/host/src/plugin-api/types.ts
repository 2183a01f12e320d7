import type { AnyCommand, Group, Outcome, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { z } from 'zod'
import type { Route } from '../api/route.ts'
import type { Fault } from '../base/fault.ts'
import type { Layout } from '../base/layout.ts'
import type { ChangeKind } from '../base/metrics/changes.ts'
import type { Owners } from '../base/owners.ts'
import type { Retries } from '../base/retry.ts'
import type { Taint } from '../base/taint.ts'
import type { Channel } from '../chat/channels/types.ts'
import type { Effect } from '../commands/effects.ts'
import type { Service, Work } from '../commands/service-tools.ts'
import type { CommandContext, CommandDefinition } from '../commands/types.ts'
import type { RunHooks } from '../runs/hooks.ts'
import type { TaskKind } from '../runs/scheduler/types.ts'
import type { PluginMigration, Statement } from '../store/plugin-tables.ts'
import type { Store, Transaction } from '../store/types.ts'
import type { Supervision } from '../supervisor/supervised.ts'
import type { Check } from './check.ts'

/**
 * What a plugin says of itself. It is read whenever the configuration is, so the file that has it imports nothing but zod:
 * everything else is behind `load` and `checks`.
 */
export interface PluginManifest<S extends z.ZodType = z.ZodType, G extends z.ZodType = z.ZodType> {
  /** lower-case letters, digits and dashes; it prefixes the plugin's commands, tables and routes */
  name: string
  version: string
  settings: S
  /** of single groups: `groups.<folder>.<name>` */
  groupSettings?: G
  /** what the settings contradict, each a sentence */
  problems?(settings: z.output<S>, groups: Readonly<Record<string, unknown>>): readonly string[]
  /** applied in order when the data directory is opened, each once; table names begin with the plugin's name and `_` */
  migrations?: readonly PluginMigration[]
  /** tables that have other names, as they are older than the plugin interface */
  tables?: readonly string[]
  cli?: Readonly<Record<string, PluginCli>>
  /** for `hatchway doctor` */
  checks?(): Promise<{ checks: readonly Check<z.output<S>>[] }>
  /** imported when the data directory is opened, by a daemon or by a command that does without one */
  load(): Promise<{
    open(host: PluginHost<z.output<S>, z.output<G>>): Contributions | Promise<Contributions>
  }>
}

/** A plugin with the values that a configuration gives it. */
export interface Plugin extends PluginManifest {
  /** not checked yet: the environment may still override it */
  input: unknown
}

/** A command for people: `hatchway <name> …`. It speaks the host's HTTP API, as all of them do. */
export interface PluginCli {
  summary: string
  load(): Promise<{ run(args: readonly string[], api: PluginApi): Promise<number> }>
}

export interface PluginApi {
  request(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown>
  print(line: string): void
}

/** What a plugin may add to the host. */
export interface Contributions {
  /** named `<plugin>.<command>`; the protocol's own names only where the protocol lists them */
  commands?: readonly CommandDefinition[]
  /** durable work that commands ask for with `defer` */
  work?: readonly Work[]
  services?: readonly Service[]
  /** asked before the built-in ones; the first that reaches a chat has it */
  channels?: readonly Channel[]
  /** tasks that run something else than an agent */
  taskKinds?: readonly TaskKind[]
  /** what runs of agents get, and are told */
  runs?: RunHooks
  /** below /plugins/<name> */
  routes?: readonly Route<unknown>[]
  /**
   * For programs on other machines, under any host name: nobody signs in, so the route itself has to find out who asks.
   * On the web server's port, below /plugins/<name>.
   */
  publicRoutes?: readonly Route<unknown>[]
  /** the public routes are served where the console is off, too */
  needsWebServer?: boolean
  /** in the transaction that unregisters a group: what the plugin's tables hold of it goes, too */
  forgetGroup?(folder: string): void
  /** what people see of the plugin, in a few words: when it changes, those who look at such a list are told */
  signs?(): Readonly<Partial<Record<ChangeKind, string>>>
  /** how much is under way, by its name in the overview */
  waiting?(): Readonly<Record<string, number>>
  /** once files are taken and agents may run */
  start?: (() => Promise<void> | void) | undefined
  /** agents cannot be run by this process; the rest of the host goes on */
  failed?: (() => void) | undefined
  /** the start is over, also where it `failed` */
  ready?: (() => Promise<void> | void) | undefined
  /** `host.signal` was aborted before */
  stop?: (() => Promise<void> | void) | undefined
}

/** What a plugin may read and write of the kernel's inside a transaction. Its own tables are `host.sql`'s. */
export type KernelTransaction = Pick<
  Transaction,
  | 'group'
  | 'groups'
  | 'groupByJid'
  | 'isFolderTaken'
  | 'insertGroup'
  | 'updateGroup'
  | 'task'
  | 'openTasks'
  | 'openTaskSize'
  | 'newTaskId'
  | 'insertTask'
  | 'updateTask'
  | 'insertMessage'
  | 'receive'
  | 'adoptSession'
  | 'finishOccurrence'
  | 'endOccurrence'
  | 'audit'
  | 'addTaint'
  | 'taint'
>

export interface PluginHost<S = unknown, G = unknown> {
  settings: S
  groupSettings(folder: string): G | undefined
  /** the groups that the configuration has settings of this plugin for, registered or not */
  configuredGroups(): readonly string[]
  timezone: string
  /** what is written durably has to survive: a power loss, or only the end of the process */
  durability: 'full' | 'process'
  environment: Readonly<NodeJS.ProcessEnv>
  log: Logger
  /** aborted when the host stops */
  signal: AbortSignal
  /** a folder of the plugin's own outside every sandbox; made when it is first asked for */
  folder(): string
  /** false: a command has opened the data directory for a moment, and nothing runs */
  isDaemon: boolean
  /** false: neither agents nor tasks are run on this host */
  runsAgents: boolean
  /** a statement on the plugin's own tables; inside a transaction it is part of it */
  sql(text: string): Statement
  /** the registry of groups, as it is now */
  group(folder: string): Group | undefined
  groups(): readonly Group[]
  tasks(filter: { group?: string; open?: boolean }): readonly Task[]
  /** All of it becomes durable together, or nothing does. `notify` tells the rest of the host what has changed. */
  transaction<T>(work: (transaction: KernelTransaction, notify: (effect: Effect) => void) => T): T
  /** has a command executed with an operator's rights: for routes that only admins may use */
  perform(command: AnyCommand): Promise<Outcome>
  /** the group's agent has read something; this can only add to what it has read */
  taint(folder: string, read: Taint, source: string): void
  /**
   * What the group has written is about to become part of `shared`, which these readers can read from now on, and later
   * whoever's `runs.shares` names it. This can only add to what they have read.
   */
  share(folder: string, shared: string, readers: readonly string[]): void
  /** what is in a file that goes along with a message; undefined: it is no longer kept */
  readAttachment(id: string): Promise<Buffer | undefined>
  /** puts a file into the group's folder, in `attachments`; where its agent finds it */
  leaveFile(folder: string, name: string, content: Buffer): Promise<string>
  /** a channel that was not there from the start; the result takes it away again */
  attach(channel: Channel): Promise<() => Promise<void>>
  /** the host's word to a group's agent, with its next turn; once for each `key` */
  tellAgent(folder: string, key: string, text: string): void
  now(): Date
}

/** What plugins that ship with Hatchway may use beyond that: they are part of the same release. */
export interface BuiltInHost<S = unknown, G = unknown> extends PluginHost<S, G> {
  store: Store
  layout: Layout
  owners: Owners
  limits: CommandContext['limits']
  fault: Fault
  retries: Pick<Retries, 'untilStored'>
  /** who starts this process again when it has ended; undefined: nobody */
  supervision: Supervision | undefined
}
