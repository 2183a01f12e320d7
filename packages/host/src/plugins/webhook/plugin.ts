import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { webhookSchema } from './settings.ts'

/** Chats `webhook:{name}`, for programs: messages are posted in both directions, with a signature. */
export const webhook = definePlugin({
  name: 'webhook',
  version,
  settings: webhookSchema,
  checks: () => import('./checks.ts'),
  load: () => import('./open.ts'),
})
