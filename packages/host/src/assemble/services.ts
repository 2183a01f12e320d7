import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Layout } from '../base/layout.ts'
import { version } from '../base/version.ts'
import type { Service } from '../commands/service-tools.ts'
import type { Config } from '../config.ts'
import { createMemoryService } from '../plugins/memory/service.ts'
import { loadPlugins } from '../services/plugins.ts'
import { createTodoService } from '../services/todos.ts'

/** The services of a daemon, as its configuration has them. What nobody configured is not even loaded. */
export async function openServices(options: {
  config: Config
  layout: Layout
  environment: NodeJS.ProcessEnv
  log: Logger
}): Promise<Service[]> {
  const { config, layout, environment, log } = options
  const { memory, calendars, mcp, timezone, durability } = config
  const services: Service[] = [createTodoService({ limit: config.limits.openTodos })]
  if (memory.enabled === 'yes') {
    services.push(
      createMemoryService({ directory: join(layout.state, 'memory'), limits: memory, durability }),
    )
  }
  if (Object.keys(calendars).length > 0) {
    const { createCalendarService } = await import('../plugins/calendar/service.ts')
    services.push(
      createCalendarService({ accounts: calendars, environment, timezone, now: () => new Date() }),
    )
  }
  if (Object.keys(mcp).length > 0) {
    const { createLentServers } = await import('../plugins/mcp/lent-server.ts')
    services.push(...createLentServers({ servers: mcp, environment, version }))
  }
  const plugins = config.services.plugins.map(path => resolve(path))
  return [...services, ...(await loadPlugins(plugins, log))]
}
