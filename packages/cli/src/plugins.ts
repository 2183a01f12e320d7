import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { PluginCommand } from '@hatchway/host/api'
import { configFiles } from '@hatchway/host/names'
import type { Command } from 'commander'
import { withClient } from './session.ts'
import { visible } from './text.ts'

/**
 * Adds the commands of the configuration's plugins, unless a built-in command is called. A plugin reads its arguments
 * itself; only --data and --config mean the same as everywhere.
 */
export async function addPluginCommands(
  program: Command,
  args: readonly string[],
  isBuiltIn: (name: string) => boolean,
): Promise<void> {
  const [name] = args
  if (name !== undefined && isBuiltIn(name)) return
  try {
    for (const command of await configured(args)) if (!isBuiltIn(command.name)) add(program, command)
  } catch (error) {
    // Help is needed most where the configuration is wrong.
    const isHelp = name === undefined || name === 'help' || name.startsWith('-')
    if (!isHelp || !(error instanceof Error)) throw error
    program.addHelpText('after', `\nCommands of plugins cannot be listed: ${visible(error.message)}`)
  }
}

async function configured(args: readonly string[]): Promise<readonly PluginCommand[]> {
  const options = { data: { type: 'string' }, config: { type: 'string' } } as const
  const { values } = parseArgs({ args: [...args], options, strict: false })
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  const file = text(values.config)
  // Only a file can name plugins; where there is none, the configuration need not be loaded.
  const isFound =
    file !== undefined || process.env.HATCHWAY_CONFIG || configFiles.some(one => existsSync(one))
  if (!isFound) return []
  const [{ loadConfig }, { pluginCommands }] = await Promise.all([
    import('@hatchway/host/config'),
    import('@hatchway/host/api'),
  ])
  return pluginCommands(await loadConfig({ data: text(values.data), file }))
}

const add = (program: Command, { name, summary, load }: PluginCommand) =>
  program
    .command(name)
    .description(summary)
    .argument('[arguments...]')
    .option('--data <directory>')
    .option('--config <file>')
    .helpOption(false)
    .allowUnknownOption()
    .action(async (given: string[], common: { data?: string; config?: string }) => {
      const { run } = await load()
      const print = (line: string) => void process.stdout.write(`${line}\n`)
      process.exitCode = await withClient(common, (client, api) => run(given, api.pluginApi(client, print)))
    })
