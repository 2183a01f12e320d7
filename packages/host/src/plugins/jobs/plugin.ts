import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { hostJobsSchema } from './settings.ts'

/** Commands on the host that the main group may have run on a schedule (`schedule_host_job`). */
export const jobs = definePlugin({
  name: 'jobs',
  version,
  settings: hostJobsSchema,
  tables: ['job_runs'],
  checks: () => import('./checks.ts'),
  load: () => import('./open.ts'),
})
