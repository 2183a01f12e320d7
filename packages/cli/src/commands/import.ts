import { resolve } from 'node:path'
import type { Command } from 'commander'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { configOf } from '../session.ts'
import { visible } from '../text.ts'

const signs = { taken: '+', there: '=', left: '-' } as const

export function addImport(program: Command): void {
  const takeOver = program.command('import').description('take over what another system has')
  common(
    takeOver
      .command('nanoclaw')
      .description('groups, their files and their tasks from NanoClaw 1.x; nothing there is changed')
      .argument('<path>', 'the directory that NanoClaw was cloned into'),
    'import nanoclaw ~/nanoclaw --dry-run',
  )
    .option('--dry-run', 'only say what would be taken')
    .option('--timezone <zone>', 'the zone its schedules were meant in; left out: the configured one')
    .action(async (path: string, options: CommonOptions & { dryRun?: boolean; timezone?: string }) => {
      const [{ importNanoClaw }, config] = await Promise.all([import('@hatchway/host'), configOf(options)])
      const report = await withProgress('Taking over', () =>
        importNanoClaw(config, resolve(path), {
          dryRun: options.dryRun === true,
          ...(options.timezone === undefined ? {} : { timezone: options.timezone }),
        }),
      )
      if (options.json) return printJson(report)
      for (const { kind, name, state, says } of report.lines)
        await printLine(`${signs[state]} ${kind} ${visible(name)}: ${visible(says)}`)
      const count = (state: string) => report.lines.filter(line => line.state === state).length
      const verb = report.dry_run ? 'would be taken over' : 'were taken over'
      await printLine(
        `${count('taken')} ${verb}, ${count('there')} were there already, ${count('left')} stay where they are.`,
      )
    })
}
