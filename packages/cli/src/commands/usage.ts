import type { UsageAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { once, printList } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'

interface UsageOptions extends CommonOptions {
  group?: string
  since?: string
}

const columns: Column<UsageAnswer[number]>[] = [
  { title: 'DAY', value: usage => usage.day },
  { title: 'GROUP', value: usage => usage.group, flexible: true },
  { title: 'MODEL', value: usage => usage.model || '-', flexible: true },
  { title: 'REQUESTS', value: usage => String(usage.requests), right: true },
  { title: 'TOKENS IN', value: usage => String(usage.input_tokens), right: true },
  { title: 'TOKENS OUT', value: usage => String(usage.output_tokens), right: true },
]

export function addUsage(program: Command): void {
  common(
    program.command('usage').description('what the groups’ agents asked of models, by day'),
    'usage --since 2026-01-01',
  )
    .option('--group <folder>', 'only this group’s')
    .option('--since <day>', 'from this day on')
    .action((options: UsageOptions) =>
      withClient(options, (client, api) => {
        const query = new URLSearchParams()
        if (options.group !== undefined) query.set('group', options.group)
        if (options.since !== undefined) query.set('since', options.since)
        return printList(
          options,
          once(client.get(`/usage?${query}`, api.usageAnswer)),
          columns,
          'No model has been asked yet.',
        )
      }),
    )
}
