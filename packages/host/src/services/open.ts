import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Layout } from '../layout.ts'
import { version } from '../version.ts'
import { createMemoryService } from './memory/service.ts'
import { loadPlugins } from './plugins.ts'
import { createTodoService } from './todos.ts'
import type { Service } from './types.ts'

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
    const { createCalendarService } = await import('./calendar/service.ts')
    services.push(
      createCalendarService({ accounts: calendars, environment, timezone, now: () => new Date() }),
    )
  }
  if (Object.keys(mcp).length > 0) {
    const { createLentServers } = await import('./mcp/lent-server.ts')
    services.push(...createLentServers({ servers: mcp, environment, version }))
  }
  const plugins = config.services.plugins.map(path => resolve(path))
  return [...services, ...(await loadPlugins(plugins, log))]
}
