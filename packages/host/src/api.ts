import type { PluginCommand } from './assemble/plugins.ts'
import { type Client, type ConnectOptions, connect as connectTo, type Place } from './client/client.ts'
import type { Config } from './config.ts'

/** The way in for people's programs: the command line today, the console tomorrow. */
export * from './api/answers.ts'
export * from './api/chat-answers.ts'
export { ApiError } from './api/failure.ts'
export { ask } from './base/programs.ts'
export { findDaemon, type RunningDaemon } from './client/daemon.ts'
export { DaemonGone } from './client/over-socket.ts'
export { pluginApi } from './client/plugin-api.ts'
export {
  begunDeployAnswer,
  type DeployAnswer,
  deployAnswer,
  deploysAnswer,
} from './plugins/deploy/answers.ts'
export {
  type JobAnswer,
  type JobRunAnswer,
  jobRunsAnswer,
  jobsAnswer,
  type WholeJobRunAnswer,
  wholeJobRunAnswer,
} from './plugins/jobs/answers.ts'
export { periodicAnswer } from './plugins/periodic/routes.ts'
export { syncAnswer, type WorktreesAnswer, worktreesAnswer } from './plugins/worktrees/routes.ts'
export { auditPointSchema as auditHeadAnswer } from './store/entities/audit.ts'
export type { Client, ConnectOptions, Place, PluginCommand }

/** To the daemon, or, where none runs, to a host opened in this process for as long as it takes. */
export const connect = (host: Config | Place, options: ConnectOptions = {}): Promise<Client> =>
  connectTo('config' in host ? host : { data: host.data, config: async () => host }, options, async local => {
    const { openLocal } = await import('./assemble/local.ts')
    return openLocal(local)
  })

/** Commands that the configured plugins add to `hatchway`. */
export const pluginCommands = async (config: Config): Promise<PluginCommand[]> =>
  (await import('./assemble/plugins.ts')).pluginCommands(config)
