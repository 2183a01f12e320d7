import { z } from 'zod'
import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'

/** Agents that are made together with the task that wakes them (`create_periodic_agent`). */
export const periodic = definePlugin({
  name: 'periodic',
  version,
  settings: z.strictObject({}),
  tables: ['periodic_agents'],
  load: () => import('./open.ts'),
})
