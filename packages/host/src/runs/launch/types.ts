import type { Group, RunStart } from '@hatchway/protocol'
import type { Owner } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Layout } from '../../base/layout.ts'
import type { Owners } from '../../base/owners.ts'
import type { Config } from '../../config.ts'
import type { Sandbox } from '../../sandboxes/types.ts'
import type { AgentStore } from '../../store/types.ts'
import type { ContainerProtocol } from '../container-protocols/types.ts'
import type { FoundDriver } from '../driver-packages.ts'
import type { DriverTraits } from '../drivers.ts'
import type { RunHooks } from '../hooks.ts'
import type { ModelHealth } from '../model-gateway/health.ts'
import type { UsageMeter } from '../usage-limits.ts'

export interface LaunchOptions {
  config: Config
  layout: Layout
  installation: string
  owners: Owners
  store: Pick<AgentStore, 'addUsage'>
  /** is told how requests to the model end */
  health?: Pick<ModelHealth, 'note'>
  /** what may still be used of models */
  meter?: Pick<UsageMeter, 'add' | 'reached' | 'near'>
  environment: NodeJS.ProcessEnv
  log: Logger
  now(): Date
  /** of the group; those that are done, or unknown, stay as they are */
  completeTodos?(folder: string, ids: readonly string[]): void
  /** what plugins add to a run */
  hooks?: readonly RunHooks[]
}

/** One run that is about to start, with everything that is known about it. */
export interface LaunchedRun {
  start: RunStart
  group: Group
  sandbox: Sandbox
  protocol: ContainerProtocol
  /** undefined: an image of another project, which brings an agent of its own */
  driver: DriverTraits | undefined
  /** the driver's package, if it needs one; undefined: none, or the image has it */
  installed: FoundDriver | undefined
  /** undefined: its programs are the host's */
  image: string | undefined
  owner: Owner | undefined
}
