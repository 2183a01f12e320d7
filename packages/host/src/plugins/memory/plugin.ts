import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { memorySchema } from './settings.ts'

/** What agents keep for later with `save_memory`, each group its own. */
export const memory = definePlugin({
  name: 'memory',
  version,
  settings: memorySchema,
  load: () => import('./open.ts'),
})
