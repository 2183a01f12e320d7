import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { deploySchema } from './settings.ts'

/** Restarts of this host with other code (`deploy`), which the supervisor takes back if they fail. */
export const deploy = definePlugin({
  name: 'deploy',
  version,
  settings: deploySchema,
  tables: ['deploys'],
  checks: () => import('./checks.ts'),
  load: () => import('./open.ts'),
})
