import type { Contributions, PluginHost } from '../../plugin-api/types.ts'
import type { CalendarAccounts } from './settings.ts'

export async function open(host: PluginHost<CalendarAccounts>): Promise<Contributions> {
  const { settings: accounts, environment, timezone, now } = host
  if (!host.isDaemon || Object.keys(accounts).length === 0) return {}
  // What reads calendars is large, and few installations have one.
  const { createCalendarService } = await import('./service.ts')
  return { services: [createCalendarService({ accounts, environment, timezone, now })] }
}
