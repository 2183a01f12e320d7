import type { ApprovalRuleAnswer, ListedApprovalAnswer, WholeApprovalAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { endingOf } from '../chat/approval.ts'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { queryOf } from '../query.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

interface ListOptions extends CommonOptions {
  group?: string
  all?: boolean
  limit: number
}

const columns: Column<ListedApprovalAnswer>[] = [
  { title: 'ID', value: approval => approval.id, right: true },
  { title: 'GROUP', value: approval => approval.group, flexible: true },
  { title: 'STATUS', value: approval => approval.status },
  { title: 'WANTS TO', value: approval => approval.action.summary, flexible: true },
  { title: 'BECAUSE', value: approval => approval.why, flexible: true },
  { title: 'UNTIL', value: approval => when(approval.expires_at), brief: briefTime },
  { title: 'DECIDED BY', value: approval => approval.decided_by ?? '-', flexible: true },
]

const ruleColumns: Column<ApprovalRuleAnswer>[] = [
  { title: 'ID', value: rule => String(rule.id), right: true },
  { title: 'GROUP', value: rule => rule.group, flexible: true },
  { title: 'ACTION', value: rule => rule.name, flexible: true },
  { title: 'MAY ALWAYS', value: rule => rule.summary, flexible: true },
  { title: 'WITH', value: rule => rule.digest.slice(0, 12) },
  { title: 'MADE BY', value: rule => rule.made_by, flexible: true },
  { title: 'AT', value: rule => when(rule.created_at), brief: briefTime },
]

export function addApprovals(program: Command): void {
  const approvals = program
    .command('approvals')
    .description('what agents are not to do without a person: decide it, for any group')

  common(
    approvals.command('list', { isDefault: true }).description('what waits for a decision, oldest first'),
    'approvals\napprovals list --all --group family',
  )
    .option('--group <folder>', 'only this group’s')
    .option('--all', 'decided ones too')
    .option('--limit <number>', 'the newest so many', positive, 100)
    .action((options: ListOptions) =>
      withClient(options, (client, api) => {
        const query = queryOf({
          group: options.group,
          all: options.all ? '1' : undefined,
          limit: String(Math.min(options.limit, 1000)),
        })
        return printList(
          options,
          once(client.get(`/approvals?${query}`, api.approvalsAnswer)),
          columns,
          options.all ? 'Nothing was ever asked.' : 'Nothing waits for a decision.',
        )
      }),
    )

  common(approvals.command('show').description('one, with all that is in it'), 'approvals show 17')
    .argument('<id>', 'its number, or its code')
    .action(async (id: string, options: CommonOptions) => {
      const approval = await withClient(options, (client, api) =>
        client.get(`/approvals/${encodeURIComponent(id)}`, api.wholeApprovalAnswer),
      )
      if (options.json) return printJson(approval)
      await show(approval)
    })

  const decide = async (id: string, body: object, options: CommonOptions) => {
    const approval = await withClient(options, (client, api) =>
      client.post(`/approvals/${encodeURIComponent(id)}`, body, api.wholeApprovalAnswer),
    )
    if (options.json) return printJson(approval)
    await printLine(`${endingOf(approval)} (${visible(approval.group)}: ${visible(approval.action.summary)})`)
  }

  common(
    approvals.command('allow').description('let it happen'),
    'approvals allow 17\napprovals allow 17 --always',
  )
    .argument('<id>', 'its number, or its code')
    .option('--always', 'and let this group do exactly this from now on; see approvals show, approvals rules')
    .action((id: string, options: CommonOptions & { always?: boolean }) =>
      decide(id, { decision: options.always ? 'always' : 'allow' }, options),
    )

  common(
    approvals.command('deny').description('say no'),
    'approvals deny 17\napprovals deny 17 too expensive',
  )
    .argument('<id>', 'its number, or its code')
    .argument('[words...]', 'why; the agent is told')
    .action((id: string, words: string[], options: CommonOptions) =>
      decide(id, { decision: 'deny', words: words.join(' ') }, options),
    )

  common(approvals.command('rules').description('what was allowed always'), 'approvals rules --group family')
    .option('--group <folder>', 'only this group’s')
    .action((options: CommonOptions & { group?: string }) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get(`/approval-rules?${queryOf({ group: options.group })}`, api.approvalRulesAnswer)),
          ruleColumns,
          'Nothing is always allowed.',
        ),
      ),
    )

  common(approvals.command('revoke').description('ask again from now on'), 'approvals revoke 3')
    .argument('<rule>', 'its number, as approvals rules shows it')
    .action(async (id: string, options: CommonOptions) => {
      const rule = await withClient(options, (client, api) =>
        client.delete(`/approval-rules/${encodeURIComponent(id)}`, api.approvalRuleAnswer),
      )
      if (options.json) return printJson(rule)
      await printLine(`${visible(rule.group)} has to ask again to ${visible(rule.summary)}.`)
    })
}

async function show(approval: WholeApprovalAnswer): Promise<void> {
  const facts: [string, string][] = [
    ['id', approval.id],
    ['group', approval.group],
    ['chat', approval.jid],
    ['action', approval.action.name],
    ['wants to', approval.action.summary],
    ['because', approval.why],
    ['asked', when(approval.created_at)],
    ['until', when(approval.expires_at)],
    ['status', approval.status],
  ]
  for (const [name, value] of facts) await printLine(`${name.padEnd(8)} ${visible(value)}`)
  const ending = endingOf(approval)
  if (ending !== undefined) await printLine(ending)
  const { fields, more } = approval.whole ?? approval.action.payload
  for (const { name, text, note } of fields) {
    await printLine(`│ ${visible(name)}: ${visible(text)}`)
    if (note !== undefined) await printLine(`│ ⚠ ${visible(note)}`)
  }
  if (more > 0) await printLine(`│ … and ${more} characters more, which are not kept`)
}
