export { hashPassword } from './api/access/password.ts'
export type { HostStatus } from './api/host.ts'
export { examine } from './assemble/examine.ts'
export { startDaemon } from './assemble/main.ts'
export { registerGroups } from './assemble/register.ts'
export { type Restored, restoreBackup } from './backup/restore.ts'
export { layoutOf } from './base/layout.ts'
export { DataDirectoryHeld } from './base/lock.ts'
export type { NewGroup } from './commands/groups.ts'
export { type Config, type ConfigInput, defineConfig, loadConfig } from './config.ts'
export { type ImportReport, importNanoClaw } from './import/nanoclaw.ts'
export { installChannel, isChannelInstalled } from './plugins/channels/install.ts'
export { findDriver, missingDriver, testedVersion } from './runs/driver-packages.ts'
export { drivers } from './runs/drivers.ts'
export { installDriver, removeDriver } from './runs/install-driver.ts'
export type { FoundProvider } from './runs/model-gateway/find-models.ts'
export { modelOf, modelsInUse } from './runs/model-gateway/health.ts'
export type { CommandEvent } from './store/types.ts'
export { takeSupervisor, whenSupervisorEnds } from './supervisor/supervised.ts'

/** Whatever model can be used here. Node's http, which this needs, takes fifteen megabytes. */
export const findModels = async (environment: NodeJS.ProcessEnv) =>
  (await import('./runs/model-gateway/find-models.ts')).findModels(environment)
