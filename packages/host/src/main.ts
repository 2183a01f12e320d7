import { serveApi } from './api/serve.ts'
import type { Config } from './config.ts'
import { openHost } from './host.ts'
import type { Host } from './types.ts'

export interface Daemon {
  host: Host
  stop(): Promise<void>
}

/** The daemon: resolves when files are being handled and whatever was waiting is finished. */
export async function startDaemon(config: Config): Promise<Daemon> {
  const host = await openHost(config, { watch: true })
  const api = await serveApi(host)
  await host.start()
  return {
    host,
    async stop() {
      await api.close()
      await host.stop()
    },
  }
}
