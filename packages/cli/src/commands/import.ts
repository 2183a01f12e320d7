import { resolve } from 'node:path'
import { command, family } from '../command.ts'
import { flag, required, text } from '../inputs.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { loadSettings } from '../session.ts'
import { visible } from '../text.ts'

const signs = { taken: '+', there: '=', left: '-' } as const

const nanoclaw = command(
  'nanoclaw',
  'import groups, their files and their tasks from NanoClaw 1.x, which is not changed',
  {
    example: '~/nanoclaw --dry-run',
    input: {
      path: required('the directory of the NanoClaw installation'),
      dryRun: flag('only show what would be imported'),
      timezone: text('zone', 'the time zone of its schedules (default: the configured one)'),
    },
    async run({ path, dryRun = false, timezone, json, ...options }) {
      const [{ importNanoClaw }, config] = await Promise.all([
        import('@hatchway/host'),
        loadSettings(options),
      ])
      const report = await withProgress('Importing', () =>
        importNanoClaw(config, resolve(path), { dryRun, ...(timezone !== undefined && { timezone }) }),
      )
      if (json) return printJson(report)
      for (const { kind, name, state, says } of report.lines)
        await printLine(`${signs[state]} ${kind} ${visible(name)}: ${visible(says)}`)
      const count = (state: string) => report.lines.filter(line => line.state === state).length
      const verb = report.dry_run ? 'would be imported' : 'imported'
      await printLine(
        `${count('taken')} ${verb}, ${count('there')} already here, ${count('left')} not imported.`,
      )
    },
  },
)

export default family('import', 'import from another system', [nanoclaw])
