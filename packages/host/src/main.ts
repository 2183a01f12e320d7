import { type ApiServer, serveApi } from './api/serve.ts'
import type { Config } from './config.ts'
import { openHost } from './host.ts'
import { createLogger } from './logger.ts'
import type { Host } from './types.ts'

export interface Daemon {
  host: Host
  stop(): Promise<void>
}

/** The daemon: resolves when files are being handled and whatever was waiting is finished. */
export async function startDaemon(config: Config): Promise<Daemon> {
  const log = createLogger(config)
  const host = await openHost(config, { watch: true, log })
  let api: ApiServer | undefined
  try {
    api = await serveApi(host, undefined, { report: error => log.error({ err: error }, 'the API failed') })
    await host.start()
  } catch (error) {
    await api?.close()
    await host.stop()
    throw error
  }
  const { close } = api
  return {
    host,
    async stop() {
      await close()
      await host.stop()
    },
  }
}
