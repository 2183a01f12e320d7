import type { LimitsAnswer, UsageAnswer } from '@hatchway/host/api'
import { InvalidArgumentError } from 'commander'
import { call, family, list } from '../command.ts'
import { choice, group, parsed, text } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

type Used = UsageAnswer[number]
/** Of a sum, only what it is by. */
type Row = Omit<Used, 'day' | 'group' | 'model'> & Partial<Pick<Used, 'day' | 'group' | 'model'>>

const columns: Column<Row>[] = [
  { title: 'DAY', value: usage => usage.day ?? '(all)' },
  { title: 'GROUP', value: usage => usage.group ?? '(all)', flexible: true },
  { title: 'MODEL', value: usage => (usage.model ?? '(all)') || '-', flexible: true },
  { title: 'REQUESTS', value: usage => String(usage.requests), right: true },
  { title: 'TOKENS IN', value: usage => String(usage.input_tokens), right: true },
  { title: 'CACHED', value: usage => String(usage.cached_tokens), right: true },
  { title: 'TOKENS OUT', value: usage => String(usage.output_tokens), right: true },
  {
    title: 'COST',
    value: ({ cost, currency }) => (cost === null ? '-' : `${currency}${cost.toFixed(4)}`),
    right: true,
  },
]

const groupings = ['group', 'model', 'day'] as const

/** One row for each group, model or day. */
function summed(rows: readonly Used[], by: (typeof groupings)[number]): Row[] {
  const sums = new Map<string, Row>()
  for (const row of rows) {
    const sum = sums.get(row[by])
    const cost = row.cost === null && sum?.cost == null ? null : (row.cost ?? 0) + (sum?.cost ?? 0)
    sums.set(row[by], {
      [by]: row[by],
      requests: row.requests + (sum?.requests ?? 0),
      input_tokens: row.input_tokens + (sum?.input_tokens ?? 0),
      output_tokens: row.output_tokens + (sum?.output_tokens ?? 0),
      cached_tokens: row.cached_tokens + (sum?.cached_tokens ?? 0),
      cost,
      currency: row.currency,
    })
  }
  const all = [...sums.values()]
  const tokens = (row: Row) => row.input_tokens + row.output_tokens
  return by === 'day' ? all : all.sort((a, b) => tokens(b) - tokens(a))
}

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
    example: '--since 2026-01-01\n--by model',
    input: {
      group,
      since: text('day', 'from this day on'),
      by: choice('what', 'add up what each of these used, the largest first', groupings),
    },
    async rows(client, api, { group, since, by }): Promise<readonly Row[]> {
      const rows = await client.get(url`/usage?${{ group, since }}`, api.usageAnswer)
      return by === undefined ? rows : summed(rows, by)
    },
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
