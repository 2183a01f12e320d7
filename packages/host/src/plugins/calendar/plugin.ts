import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { calendarsSchema } from './settings.ts'

/** Calendars on CalDAV servers that agents may use. */
export const calendar = definePlugin({
  name: 'calendar',
  version,
  settings: calendarsSchema,
  checks: () => import('./checks.ts'),
  load: () => import('./open.ts'),
})
