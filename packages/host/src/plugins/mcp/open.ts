import { bindRoutes } from '../../api/route.ts'
import { version } from '../../base/version.ts'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { createManager } from './manager.ts'
import { lentServerRoutes } from './routes.ts'
import type { LentServers } from './settings.ts'

export function open(host: BuiltInHost<LentServers>): Contributions {
  const manager = createManager({
    configured: host.settings,
    folder: host.folder,
    staging: host.layout.staging,
    environment: host.environment,
    version,
    isDaemon: host.isDaemon,
    signal: host.signal,
    leaveFile: host.leaveFile,
    log: host.log,
  })
  return {
    routes: bindRoutes(lentServerRoutes, manager),
    services: host.isDaemon ? [manager.service] : [],
  }
}
