import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { channelsSchema } from './settings.ts'

/** Chat apps that people add: Telegram and others. */
export const channels = definePlugin({
  name: 'channels',
  version,
  settings: channelsSchema,
  load: () => import('./open.ts'),
})
