import { Command } from 'commander'
import { commands } from './main.ts'

/** Each command as `--help` lists it. `npm run generate` writes it down, so that help need not load them all. */
export async function summarise(): Promise<Record<string, string>> {
  const program = new Command()
  for (const load of Object.values(commands)) {
    const { default: add } = await load()
    add(program)
  }
  const help = program.createHelp()
  return Object.fromEntries(
    help
      .visibleCommands(program)
      .filter(({ parent }) => parent === program)
      .map(command => [help.subcommandTerm(command), help.subcommandDescription(command)]),
  )
}
