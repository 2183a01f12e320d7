import type { UsageAnswer } from '@hatchway/host/api'
import { list } from '../command.ts'
import { group, text } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'

const columns: Column<UsageAnswer[number]>[] = [
  { title: 'DAY', value: usage => usage.day },
  { title: 'GROUP', value: usage => usage.group, flexible: true },
  { title: 'MODEL', value: usage => usage.model || '-', flexible: true },
  { title: 'REQUESTS', value: usage => String(usage.requests), right: true },
  { title: 'TOKENS IN', value: usage => String(usage.input_tokens), right: true },
  { title: 'TOKENS OUT', value: usage => String(usage.output_tokens), right: true },
]

export default list('usage', 'show model requests and tokens of each group by day', {
  example: '--since 2026-01-01',
  input: { group, since: text('day', 'from this day on') },
  rows: (client, api, { group, since }) => client.get(url`/usage?${{ group, since }}`, api.usageAnswer),
  columns,
  empty: 'No model requests yet.',
})
