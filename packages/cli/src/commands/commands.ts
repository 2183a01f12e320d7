import type { CommandAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { type DecisionOptions, okOf, withDecision } from '../decision.ts'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { queryOf } from '../query.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { decisionOf, rowOf, tookOf } from '../tail/row.ts'

interface ListOptions extends CommonOptions, DecisionOptions {
  group?: string
  type?: string
  after?: number
  before?: number
  limit: number
}

export const columns: Column<CommandAnswer>[] = [
  { title: 'SEQ', value: command => String(command.seq), right: true },
  { title: 'RECEIVED', value: command => when(command.received_at), brief: briefTime },
  { title: 'GROUP', value: command => command.group, flexible: true },
  { title: 'TYPE', value: command => command.type ?? '?', flexible: true },
  { title: 'DECISION', value: inWords, flexible: true },
  { title: 'TOOK', value: command => tookOf(command.took_us), right: true },
  { title: 'REASON', value: reasonOf, flexible: true },
]

function inWords(command: CommandAnswer): string {
  const { outcome, repeated } = command
  const decision = outcome?.ok === false ? `refused ${outcome.error.code}` : decisionOf(command)
  return repeated ? `${decision}, repeated` : decision
}

function reasonOf({ outcome }: CommandAnswer): string {
  return outcome?.ok === false ? outcome.error.message : '-'
}

export function addCommands(program: Command): void {
  const commands = program
    .command('commands')
    .description('what agents asked for, command by command; tail shows them as they come')

  const list = common(
    commands.command('list', { isDefault: true }).description('the newest that match, oldest first'),
    'commands\ncommands list --group family --decision refused',
  )
  withDecision(
    list
      .option('--group <folder>', 'only this group’s')
      .option('--type <type>', 'only commands of this type'),
  )
    .option('--after <seq>', 'only later ones', positive)
    .option('--before <seq>', 'only earlier ones', positive)
    .option('--limit <number>', 'so many, at most 10000', positive, 100)
    .action((options: ListOptions) =>
      withClient(options, (client, api) => {
        const { group, type, decision, after, before, limit } = options
        const query = queryOf({ group, type, ok: okOf(decision), after, before, limit })
        return printList(
          options,
          once(client.get(`/commands?${query}`, api.commandsAnswer)),
          columns,
          'There is no such command.',
        )
      }),
    )

  common(
    commands.command('show').description('one, with its file, its steps, its receipt and what was noted'),
    'commands show 17',
  )
    .argument('<seq>', 'its number, as commands list shows it')
    .action(async (seq: string, options: CommonOptions) => {
      const command = await withClient(options, (client, api) =>
        client.get(`/commands/${encodeURIComponent(seq)}`, api.wholeCommandAnswer),
      )
      if (options.json) return printJson(command)
      const { linesOf } = await import('../tail/one.ts')
      const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
      await printLine(linesOf(rowOf(command), command, width).join('\n'))
    })
}
