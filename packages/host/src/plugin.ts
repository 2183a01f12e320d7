/** For plugins: `import { definePlugin, defineCommand } from 'hatchway/plugin'`. docs/extending.md explains each of them. */

export { bytesOf } from './api/requests.ts'
export { bindRoutes, type Description, type Route, routesOf } from './api/route.ts'
export { done, refused } from './base/outcome.ts'
export type { Taint } from './base/taint.ts'
export {
  type Channel,
  type ChannelHost,
  type ChannelStatus,
  DeliveryError,
  type Incoming,
  type Outgoing,
  type Part,
} from './chat/channels/types.ts'
export type { Effect } from './commands/effects.ts'
export { storeWork as defer } from './commands/requests.ts'
export type { Service, ServiceContext, Work, WorkContext } from './commands/service-tools.ts'
export { type CommandContext, type CommandDefinition, defineCommand, local } from './commands/types.ts'
export type { Dataset, Traits } from './guard/guard.ts'
export type { TrustLabels } from './guard/labels.ts'
export { type Check, type CheckContext, type Finding, missingVariables } from './plugin-api/check.ts'
export { definePlugin } from './plugin-api/define.ts'
export type {
  Contributions,
  KernelTransaction,
  Plugin,
  PluginApi,
  PluginCli,
  PluginHost,
  PluginManifest,
} from './plugin-api/types.ts'
export type { Room, RunHooks, RunMounts } from './runs/hooks.ts'
export type { TaskKind } from './runs/scheduler/types.ts'
export { defineService, type ServiceDefinition, ServiceRefusal } from './services/define.ts'
export type { PluginMigration, Statement } from './store/plugin-tables.ts'
