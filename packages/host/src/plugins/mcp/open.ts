import { version } from '../../base/version.ts'
import type { Contributions, PluginHost } from '../../plugin-api/types.ts'
import type { LentServers } from './settings.ts'

export async function open(host: PluginHost<LentServers>): Promise<Contributions> {
  const { settings: servers, environment } = host
  if (!host.isDaemon || Object.keys(servers).length === 0) return {}
  // The MCP client is large, and few installations lend a server.
  const { createLentServers } = await import('./lent-server.ts')
  return { services: createLentServers({ servers, environment, version }) }
}
