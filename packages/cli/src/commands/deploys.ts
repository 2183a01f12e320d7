import type { DeployAnswer } from '@hatchway/host/api'
import { list } from '../command.ts'
import { timeColumn } from '../format.ts'
import { limit } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'

export const shortRevision = (revision: string) => revision.slice(0, 12)

const columns: Column<DeployAnswer>[] = [
  { title: 'ID', value: deploy => String(deploy.id), right: true },
  timeColumn('STARTED', deploy => deploy.created_at),
  { title: 'BY', value: deploy => deploy.group ?? 'operator', flexible: true },
  { title: 'FROM', value: deploy => shortRevision(deploy.from) },
  { title: 'TO', value: deploy => shortRevision(deploy.to) },
  { title: 'STATUS', value: deploy => deploy.status },
  { title: 'REASON', value: deploy => deploy.error ?? '-', flexible: true },
]

export default list('deploys', 'list the newest deploys, oldest first', {
  example: '--limit 5',
  input: { limit: limit(20) },
  rows: (client, api, { limit }) => client.get(url`/deploys?${{ limit }}`, api.deploysAnswer),
  columns,
  empty: 'No deploys yet.',
})
