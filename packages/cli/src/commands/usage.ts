import type { LimitsAnswer, UsageAnswer } from '@hatchway/host/api'
import { InvalidArgumentError } from 'commander'
import { call, family, list } from '../command.ts'
import { group, parsed, text } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<UsageAnswer[number]>[] = [
  { title: 'DAY', value: usage => usage.day },
  { title: 'GROUP', value: usage => usage.group, flexible: true },
  { title: 'MODEL', value: usage => usage.model || '-', flexible: true },
  { title: 'REQUESTS', value: usage => String(usage.requests), right: true },
  { title: 'TOKENS IN', value: usage => String(usage.input_tokens), right: true },
  { title: 'CACHED', value: usage => String(usage.cached_tokens), right: true },
  { title: 'TOKENS OUT', value: usage => String(usage.output_tokens), right: true },
  { title: 'COST', value: usage => usage.cost?.toFixed(4) ?? '-', right: true },
]

const limitColumns: Column<LimitsAnswer[number]>[] = [
  { title: 'GROUP', value: limit => limit.group ?? '(all)', flexible: true },
  { title: 'LIMIT', value: limit => limit.limit },
  { title: 'USED', value: limit => String(limit.used), right: true },
  { title: 'OF', value: limit => String(limit.most), right: true },
  { title: 'SHARE', value: limit => `${Math.round((100 * limit.used) / limit.most)} %`, right: true },
]

export default family('usage', 'show what agents use of models, and its limits', [
  list('list', 'show model requests, tokens and cost of each group by day', {
    isDefault: true,
    example: '--since 2026-01-01',
    input: { group, since: text('day', 'from this day on') },
    rows: (client, api, { group, since }) => client.get(url`/usage?${{ group, since }}`, api.usageAnswer),
    columns,
    empty: 'No model requests yet.',
  }),
  list('limits', 'show the configured limits and what is used of them', {
    example: '--json',
    rows: (client, api) => client.get('/usage/limits', api.limitsAnswer),
    columns: limitColumns,
    empty: 'No limits are configured: usage.limits and groups.<folder>.limits.',
  }),
  call('raise', 'raise limits until the end of the day (UTC)', {
    example: '--group family\n--factor 3',
    input: {
      group,
      factor: parsed('number', 'as many times as high (default: 2)', given => {
        const factor = Number(given)
        if (factor >= 1 && factor <= 1000) return factor
        throw new InvalidArgumentError('It must be from 1 to 1000.')
      }),
    },
    call: (client, api, { group, factor }) =>
      client.post('/usage/raise', { group, factor }, api.limitsAnswer),
    print: (_, { group, factor = 2 }) =>
      `For today the limits of ${group === undefined ? 'all groups together' : visible(group)} are ${factor} times as high.`,
  }),
])
