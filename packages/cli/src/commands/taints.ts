import type { TaintsAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { once, printList, when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'

type Taint = TaintsAnswer[number]

const told = (since: Taint['secret']) => (since ? `${since.by}, ${when(since.at)}` : '-')

const columns: Column<Taint>[] = [
  { title: 'GROUP', value: taint => taint.group, flexible: true },
  { title: 'CONTEXT', value: taint => taint.context, flexible: true },
  { title: 'STRANGERS’ WORDS', value: taint => told(taint.corrupted), flexible: true },
  { title: 'SECRETS', value: taint => told(taint.secret), flexible: true },
]

export function addTaints(program: Command): void {
  const taints = program.command('taints').description('what agents have read that the guard goes by')
  common(taints.command('list').description('the contexts that have read something'), 'taints list').action(
    (options: CommonOptions) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get('/taints', api.taintsAnswer)),
          columns,
          'Nobody has read anything.',
        ),
      ),
  )
  common(
    taints
      .command('clear')
      .description(
        'forget what a group has read, if you have looked at its files; `groups wipe` removes them',
      )
      .argument('<group>', 'the group’s folder')
      .argument('[context]', 'as `taints list` shows it', 'session'),
    'taints clear family',
  ).action((group: string, context: string, options: CommonOptions) =>
    withClient(options, async (client, api) => {
      const path = `/taints/${encodeURIComponent(group)}/${encodeURIComponent(context)}`
      const cleared = await client.delete(path, api.clearedTaintAnswer)
      if (options.json) return printJson(cleared)
      await printLine(`What the context ${context} of ${group} has read is forgotten.`)
    }),
  )
}
