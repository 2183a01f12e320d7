import { command, tableOf } from '../command.ts'
import { printJson, printLine } from '../output.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

type Setting = Awaited<ReturnType<typeof import('@hatchway/host/config')['explainConfig']>>['values'][number]

export const columns: Column<Setting>[] = [
  { title: 'NAME', value: setting => setting.name },
  { title: 'VALUE', value: setting => String(setting.value ?? setting.default), flexible: true },
  { title: 'FROM', value: setting => setting.source, flexible: true },
  // Spare, because it follows from the name.
  { title: 'VARIABLE', value: setting => setting.env, flexible: true, spare: true },
]

export default command('config', 'show the configuration in effect, and where each value comes from', {
  example: '--data /srv/hatchway',
  async run({ data, config, json }) {
    const { explainConfig } = await import('@hatchway/host/config')
    const { file, values } = await explainConfig({ data, file: config })
    if (json) {
      return printJson({
        file: file ?? null,
        values: values.map(({ name, value, source, env }) => ({ name, value: value ?? null, source, env })),
      })
    }
    await printLine(file === undefined ? 'No configuration file.' : `Configuration file: ${visible(file)}`)
    await printLine(await tableOf(columns, values))
  },
})
