import type { RequestsAnswer, ServicesAnswer } from '@hatchway/host/api'
import { call, family, list, tableOf } from '../command.ts'
import { timeColumn } from '../format.ts'
import type { Column } from '../table.ts'

type Tool = ServicesAnswer[number]['tools'][number]
interface Row {
  service: ServicesAnswer[number]
  tool: Tool | undefined
}

const groupsOf = ({ groups }: Tool): string =>
  typeof groups === 'string' ? groups : groups.join(', ') || 'none'

const labelsOf = ({ labels }: Tool): string =>
  Object.entries(labels)
    .flatMap(([label, value]) => (value === 'no' ? [] : value === 'yes' ? [label] : [`${label} ${value}`]))
    .join(', ')

const columns: Column<Row>[] = [
  { title: 'SERVICE', value: ({ service }) => service.name },
  { title: 'STATE', value: ({ service }) => (service.ok ? 'ok' : service.text), flexible: true },
  { title: 'TOOL', value: ({ tool }) => tool?.name ?? '-', flexible: true },
  { title: 'GROUPS', value: ({ tool }) => (tool ? groupsOf(tool) : '-'), flexible: true },
  { title: 'TRUST', value: ({ tool }) => (tool ? labelsOf(tool) : '-'), flexible: true },
]

/** A row for each tool; a service without tools has one, which says why. */
const rowsOf = (services: ServicesAnswer): Row[] =>
  services.flatMap((service): Row[] =>
    service.tools.length === 0
      ? [{ service, tool: undefined }]
      : service.tools.map(tool => ({ service, tool })),
  )

const requestColumns: Column<RequestsAnswer[number]>[] = [
  { title: 'GROUP', value: request => request.group, flexible: true },
  { title: 'TOOL', value: request => request.tool, flexible: true },
  timeColumn('SINCE', request => request.created_at),
  timeColumn('EXPIRES', request => request.expires_at),
  { title: 'ID', value: request => request.id ?? '-', flexible: true },
]

export default family('services', 'inspect services that agents can use', [
  call('list', 'list services, their tools, and which groups may use them', {
    call: (client, api) => client.get('/services', api.servicesAnswer),
    print: services => (services.length === 0 ? 'No services.' : tableOf(columns, rowsOf(services))),
  }),
  list('requests', 'list unanswered requests of agents', {
    rows: (client, api) => client.get('/requests', api.requestsAnswer),
    columns: requestColumns,
    empty: 'No open requests.',
  }),
])
