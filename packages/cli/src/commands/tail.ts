import type { Command } from 'commander'
import { type DecisionOptions, withDecision } from '../decision.ts'
import { type CommonOptions, common, positive } from '../options.ts'

export interface TailOptions extends CommonOptions, DecisionOptions {
  group?: string
  type?: string
  lines?: number
  plain?: boolean
}

export function addTail(program: Command): void {
  const command = common(
    program
      .command('tail')
      .description(
        'commands as they are handled: who, what, decision, time taken; on a terminal a view of the whole screen, ? in it says more',
      ),
    'tail --group family\ntail --plain --lines 100 --decision refused',
  )
  withDecision(
    command
      .option('--group <folder>', 'only this group’s')
      .option('--type <type>', 'only commands of this type'),
  )
    .option(
      '-n, --lines <number>',
      'how many of the past to begin with (default: 20; the view: 1000)',
      positive,
    )
    .option('--plain', 'lines also on a terminal')
    .action(tail)
}

async function tail(options: TailOptions): Promise<void> {
  const isView =
    process.stdin.isTTY &&
    process.stdout.isTTY &&
    process.env.TERM !== 'dumb' &&
    !options.json &&
    !options.plain
  if (isView) return (await import('../tail/full-screen.ts')).showAll(options)
  return (await import('../tail/lines.ts')).printAll(options)
}
