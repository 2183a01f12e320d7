import { bindRoutes } from '../../api/route.ts'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { hostJobCommand } from './command.ts'
import { createJobs } from './jobs.ts'
import { jobRoutes } from './routes.ts'
import { createJobRules } from './rules.ts'
import type { HostJobsSettings } from './settings.ts'
import { createJobRunTable } from './table.ts'

/** so many of the newest occurrences tell whether anything has changed */
const watched = 20

export function open(host: BuiltInHost<HostJobsSettings>): Contributions {
  const { settings, store } = host
  const rules = createJobRules(settings, host.runsAgents)
  const command = hostJobCommand(rules)
  const table = createJobRunTable(host)
  return {
    commands: [command],
    taskKinds: [createJobs({ host, rules, command, table })],
    routes: bindRoutes(jobRoutes, { host, table }),
    signs: () => ({
      jobs: store.agents
        .occurrences({ limit: watched })
        .map(({ id, status }) => `${id} ${status}`)
        .join(),
    }),
  }
}
