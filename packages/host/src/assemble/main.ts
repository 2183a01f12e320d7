import type { Host } from '../api/host.ts'
import { type ApiServer, serveApi } from '../api/serve.ts'
import { checkWeb, serveWeb, type WebServer } from '../api/web-server.ts'
import { announce } from '../base/announce.ts'
import { createLogger } from '../base/logger.ts'
import { livenessWarning } from '../chat/channels/liveness.ts'
import type { Config } from '../config.ts'
import { type OpenOptions, openHost } from './host.ts'

export interface Daemon {
  host: Host
  /** for browsers */
  web: WebServer | undefined
  /** resolves when agents can be started, with what has to stay on screen */
  agentsReady: Promise<
    { sandbox: string | undefined; reason: string; warning: string | undefined } | undefined
  >
  stop(): Promise<void>
}

/** The daemon: resolves when files are being handled and whatever was waiting is finished. */
export async function startDaemon(config: Config, supervision?: OpenOptions['supervision']): Promise<Daemon> {
  await checkWeb(config)
  const log = createLogger(config)
  const host = await openHost(config, { watch: true, log, supervision })
  const warning = () => {
    const agents = host.agents()
    const lasting = [
      agents?.choice().warning,
      agents?.modelWarning(),
      livenessWarning(host.chats?.liveness() ?? [], Date.now()),
    ].filter(text => text !== undefined)
    return host.retries.problem() ?? (lasting.join(' ') || undefined)
  }
  let api: ApiServer | undefined
  let web: WebServer | undefined
  try {
    const { chats } = host
    api = await serveApi(host, undefined, {
      report: error => log.error({ err: error }, 'the API failed'),
      ...(chats ? { chat: { chats, warning } } : {}),
    })
    await host.start()
    if (chats) web = await serveWeb({ store: host.store, config, chats, host, log, warning })
    if (web)
      announce(config.data, { webPort: web.port, ...(web.link === undefined ? {} : { webUrl: web.url }) })
  } catch (error) {
    await api?.close()
    await host.stop()
    throw error
  }
  const { close } = api
  const agentsReady = host
    .startAgents()
    .catch(error => {
      log.error({ err: error }, 'agents cannot be started; the hatch works all the same')
      host.plugins.failed()
    })
    .then(() => host.plugins.ready())
    .then(() => {
      const choice = host.agents()?.choice()
      return choice && { sandbox: choice.sandbox?.name, reason: choice.reason, warning: warning() }
    })
  return {
    host,
    web,
    agentsReady,
    async stop() {
      // Agents that wait for room to start must not be waited for.
      host.retries.stop()
      await web?.close()
      await close()
      await agentsReady
      await host.stop()
    },
  }
}
