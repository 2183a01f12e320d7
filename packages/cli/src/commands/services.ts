import type { RequestsAnswer, ServicesAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'

interface Line {
  service: string
  state: string
  tool: string
  groups: string
  labels: string
}

const columns: Column<Line>[] = [
  { title: 'SERVICE', value: line => line.service },
  { title: 'STATE', value: line => line.state, flexible: true },
  { title: 'TOOL', value: line => line.tool, flexible: true },
  { title: 'GROUPS', value: line => line.groups, flexible: true },
  { title: 'TRUST', value: line => line.labels, flexible: true },
]

/** A line for each tool; a service without any still has one, which says why. */
const linesOf = (services: ServicesAnswer): Line[] =>
  services.flatMap(({ name, ok, text, tools }) => {
    const about = { service: name, state: ok ? 'ok' : text }
    if (tools.length === 0) return [{ ...about, tool: '-', groups: '-', labels: '-' }]
    return tools.map(tool => ({
      ...about,
      tool: tool.name,
      groups: typeof tool.groups === 'string' ? tool.groups : tool.groups.join(', ') || 'none',
      labels: Object.entries(tool.labels)
        .flatMap(([label, value]) =>
          value === 'no' ? [] : value === 'yes' ? [label] : [`${label} ${value}`],
        )
        .join(', '),
    }))
  })

const requestColumns: Column<RequestsAnswer[number]>[] = [
  { title: 'GROUP', value: request => request.group, flexible: true },
  { title: 'TOOL', value: request => request.tool, flexible: true },
  { title: 'SINCE', value: request => when(request.created_at), brief: briefTime },
  { title: 'UNTIL', value: request => when(request.expires_at), brief: briefTime },
  { title: 'ID', value: request => request.id ?? '-', flexible: true },
]

export function addServices(program: Command): void {
  const services = program.command('services').description('what agents can ask the host for')
  common(
    services.command('list').description('the services, their tools, and who may use them'),
    'services list',
  ).action((options: CommonOptions) =>
    withClient(options, async (client, api) => {
      const found = await client.get('/services', api.servicesAnswer)
      if (options.json) return printJson(found)
      await printList(options, once(Promise.resolve(linesOf(found))), columns, 'There are no services.')
    }),
  )
  common(
    services.command('requests').description('requests that are not answered yet'),
    'services requests',
  ).action((options: CommonOptions) =>
    withClient(options, (client, api) =>
      printList(
        options,
        once(client.get('/requests', api.requestsAnswer)),
        requestColumns,
        'Nobody waits for an answer.',
      ),
    ),
  )
}
