import type { Command, Group, Outcome } from '@hatchway/protocol'
import type { Quarantine, WatchMode } from '@hatchway/spool'
import type { OpenWorks } from '../assemble/host-work.ts'
import type { OpenAgents } from '../assemble/runs.ts'
import type { Changes } from '../base/metrics/changes.ts'
import type { Meter } from '../base/metrics/meter.ts'
import type { Retries } from '../base/retry.ts'
import type { Chats } from '../chat/chats.ts'
import type { Config } from '../config.ts'
import type { Catalogue } from '../services/catalogue.ts'
import type { Desk } from '../services/request-queue.ts'
import type { CommandRow, Store } from '../store/types.ts'

/** One handled command, as `hatchway tail` and the console see it the moment it is durable. */
export interface CommandEvent {
  seq: number
  group: string
  file: string
  dialect: CommandRow['dialect']
  type: string | null
  requestId: string | null
  /** null: accepted, and the answer follows */
  outcome: Outcome | null
  receivedAt: number
  tookUs: number
  /** how long the file lay there before it was claimed, by its own clock */
  waitedMs: number
  /** the request id was answered before: the first answer was given again */
  repeated: boolean
}

export type NewGroup = Pick<Group, 'folder' | 'jid' | 'name' | 'main' | 'dialect'> &
  Partial<Pick<Group, 'trigger' | 'requires_trigger' | 'channel'>>

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

/** What the API needs of the host; the daemon has it running, the command line opens it for a moment. */
export interface Host {
  config: Config
  store: Store
  quarantine: Quarantine
  status(): HostStatus
  /** does what an agent could ask for, with an operator's rights */
  perform(command: Command, about?: Group): Promise<Outcome>
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
  agents(): OpenAgents | undefined
  works(): OpenWorks | undefined
  services(): { catalogue: Catalogue; desk: Desk } | undefined
  /** begins to take files; resolves when whatever was waiting is finished */
  start(): Promise<void>
  /** begins to hear people, to run agents and to keep the schedule */
  startAgents(): Promise<void>
  stop(): Promise<void>
}
