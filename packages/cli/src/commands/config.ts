import type { Command } from 'commander'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine, write } from '../output.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

type Setting = Awaited<ReturnType<typeof import('@hatchway/host/config')['explainConfig']>>['values'][number]

export const columns: Column<Setting>[] = [
  { title: 'NAME', value: setting => setting.name },
  { title: 'VALUE', value: setting => String(setting.value ?? setting.default), flexible: true },
  { title: 'FROM', value: setting => setting.source, flexible: true },
  // Made of the name.
  { title: 'VARIABLE', value: setting => setting.env, flexible: true, spare: true },
]

export function addConfig(program: Command): void {
  common(
    program.command('config').description('the configuration in effect, and where each value came from'),
    'config --data /srv/hatchway',
  ).action(async (options: CommonOptions) => {
    const { explainConfig } = await import('@hatchway/host/config')
    const { file, values } = await explainConfig({ data: options.data, file: options.config })
    if (options.json) {
      return printJson({
        file: file ?? null,
        values: values.map(({ name, value, source, env }) => ({ name, value: value ?? null, source, env })),
      })
    }
    const { createTable } = await import('../table.ts')
    await printLine(file === undefined ? 'No configuration file.' : `Configuration file: ${visible(file)}`)
    const table = createTable(columns, process.stdout.isTTY ? process.stdout.columns : undefined)
    await write(await table(values))
  })
}
