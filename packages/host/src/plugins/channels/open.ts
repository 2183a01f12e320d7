import { bindRoutes } from '../../api/route.ts'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { createManager } from './manager.ts'
import { channelRoutes } from './routes.ts'
import type { ChannelsSettings } from './settings.ts'

export function open(host: BuiltInHost<ChannelsSettings>): Contributions {
  const manager = createManager({
    folder: host.folder,
    layout: host.layout,
    isDaemon: host.isDaemon,
    attach: host.attach,
    memory: host.store.chats,
    readFile: host.readAttachment,
    assistant: host.settings.assistant,
    log: host.log,
    now: () => host.now().getTime(),
  })
  return {
    routes: bindRoutes(channelRoutes, manager),
    channels: host.isDaemon ? manager.unopened : [],
    // The console reads the list of channels again when the host's status changes.
    signs: () => ({ status: manager.sign() }),
    start: () => manager.start(),
  }
}
