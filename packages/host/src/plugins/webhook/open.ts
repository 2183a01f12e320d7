import { bindRoutes } from '../../api/route.ts'
import type { Contributions, PluginHost } from '../../plugin-api/types.ts'
import { createWebhookChannel } from './channel.ts'
import { webhookRoutes } from './routes.ts'
import type { WebhookSettings } from './settings.ts'

export function open(host: PluginHost<WebhookSettings>): Contributions {
  if (!host.isDaemon) return {}
  const { settings, environment, readAttachment } = host
  const channel = createWebhookChannel({
    settings,
    environment,
    readFile: readAttachment,
    now: () => host.now().getTime(),
  })
  return {
    channels: [channel],
    publicRoutes: bindRoutes(webhookRoutes, channel),
    needsWebServer: channel.problem() === undefined,
  }
}
