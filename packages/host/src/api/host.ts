import type { AnyCommand, Group, HostOffer, Outcome } from '@hatchway/protocol'
import type { Quarantine, WatchMode } from '@hatchway/spool'
import type { Changes } from '../base/metrics/changes.ts'
import type { Meter } from '../base/metrics/meter.ts'
import type { Retries } from '../base/retry.ts'
import type { Chats } from '../chat/chats.ts'
import type { NewGroup } from '../commands/groups.ts'
import type { Work } from '../commands/service-tools.ts'
import type { HostRules } from '../commands/types.ts'
import type { ModelSettings } from '../config/model.ts'
import type { Config } from '../config.ts'
import type { RunQueue } from '../runs/run-queue.ts'
import type { Scheduler } from '../runs/scheduler/scheduler.ts'
import type { UsageMeter } from '../runs/usage-limits.ts'
import type { Choice } from '../sandboxes/choose.ts'
import type { Catalogue } from '../services/catalogue.ts'
import type { RequestQueue } from '../services/request-queue.ts'
import type { CommandEvent, Store } from '../store/types.ts'
import type { PluginRoutes, PublicRoutes } from './route.ts'

export interface HostStatus {
  version: string
  pid: number
  data: string
  startedAt: string
  durability: Config['durability']
  groups: number
  /** since the start */
  handled: number
  refused: number
  busy: boolean
}

export interface OpenRuns {
  queue: RunQueue
  scheduler: Scheduler
  choice(): Choice
  /** what keeps agents from asking their model, as far as is known */
  modelWarning(): string | undefined
  /** what was wrong with the model was wrong with another one */
  modelChanged(): void
  meter: Pick<UsageMeter, 'states' | 'raise'>
  stop(): Promise<void>
}

/** The model for groups without one of their own, where the configuration leaves it open. */
export interface ModelChoice {
  /** the configuration names a model: nothing that is chosen here is used */
  isConfigured: boolean
  chosen(): ModelSettings | undefined
  /** kept, and used from the next run on; undefined: what the configuration says */
  choose(model: ModelSettings | undefined): void
}

export interface HostWork {
  /** what commands are judged by */
  rules: HostRules
  /** for requests of the kind `work` */
  work(name: string): Work | undefined
  /** what a command of this type would have done for the group */
  workFor(command: string, folder: string): Work | undefined
  /** what the group's agent is told that this host does for it now */
  offersTo(group: Group): readonly HostOffer[]
}

/** What plugins tell people, and what they are told of this process. */
export interface PluginStates {
  /** by the kind of change: another text means that something has changed */
  signs(): readonly (readonly [kind: string, text: string])[]
  /** how much is under way, by its name in the overview */
  waiting(): Readonly<Record<string, number>>
  /** agents cannot be run by this process */
  failed(): void
  /** the start is over */
  ready(): Promise<void>
}

/** What the API needs of the host; the daemon has it running, the command line opens it for a moment. */
export interface Host {
  /** what plugins add to the API, and below which path */
  routes: PluginRoutes
  /** what plugins add to the web server for programs on other machines */
  publicRoutes: PublicRoutes
  plugins: PluginStates
  config: Config
  modelChoice: ModelChoice
  store: Store
  quarantine: Quarantine
  status(): HostStatus
  /** does what an agent could ask for, with an operator's rights */
  perform(command: AnyCommand, about?: Group): Promise<Outcome>
  addGroup(group: NewGroup): Promise<Outcome>
  removeGroup(folder: string): Promise<Outcome>
  /** forgets what a context has read; whether it had read anything */
  clearTaint(group: string, context: string): boolean
  /** has a refused file handled again; the outcome says whether it is under way, not how it ends */
  replay(id: string): Promise<Outcome>
  /** removes what the group's runs can write, and forgets what they had read; only where agents are run */
  wipeGroup?(folder: string): Promise<Outcome>
  /** runs a task now, beside its schedule; only where agents are run */
  runTask?(taskId: string): Outcome
  mode(folder: string): WatchMode | undefined
  /** whether files are being taken */
  isReady(): boolean
  /** what the disk or the database keeps from being stored */
  retries: Retries
  meter: Meter
  changes: Changes
  subscribe(listener: (event: CommandEvent) => void): () => void
  /** told the number of a command whose answer has followed */
  onAnswered(listener: (seq: number) => void): () => void
  /** only a daemon has them */
  chats: Chats | undefined
  agents(): OpenRuns | undefined
  hostWork(): HostWork | undefined
  services(): { catalogue: Catalogue; requestQueue: RequestQueue } | undefined
  /** begins to take files; resolves when whatever was waiting is finished */
  start(): Promise<void>
  /** begins to hear people, to run agents and to keep the schedule */
  startAgents(): Promise<void>
  stop(): Promise<void>
}

/** What routes about the host need to be answered. */
export interface HostContext {
  host: Host
  /** ends the event streams */
  signal: AbortSignal
  heartbeatMs: number
  /** what a reader of an event stream may be behind */
  eventBufferBytes: number
}
