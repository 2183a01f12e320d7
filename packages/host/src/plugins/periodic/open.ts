import { bindRoutes } from '../../api/route.ts'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { createPeriodicAgents } from './agents.ts'
import { periodicCommand } from './command.ts'
import { periodicRoutes } from './routes.ts'
import { createPeriodicTable } from './table.ts'

export function open(host: BuiltInHost<Record<string, never>>): Contributions {
  const table = createPeriodicTable(host.sql)
  const agents = createPeriodicAgents(host, table)
  return {
    commands: [periodicCommand(table)],
    work: [agents.work],
    routes: bindRoutes(periodicRoutes, host.isDaemon ? agents : undefined),
    forgetGroup: table.forgetGroup,
  }
}
