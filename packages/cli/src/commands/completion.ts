import type { Command, Option } from 'commander'
import type { CliCommand } from '../command.ts'
import { type CompletedCommand, completionFor, shells } from '../completion.ts'
import { write } from '../output.ts'

/** Not by `command`, because it needs the whole program. */
const add: CliCommand = program => {
  program
    .command('completion')
    .description('print a script with which the shell completes commands and options')
    .argument('<shell>', shells.join(', '))
    .addHelpText(
      'after',
      '\nExample:\n  $ npx hatchway completion bash >> ~/.bashrc\n  $ npx hatchway completion fish > ~/.config/fish/completions/hatchway.fish',
    )
    .action((shell: string) => write(completionFor(shell, describe(program))))
}
export default add

function describe(command: Command): CompletedCommand {
  const help = command.createHelp()
  return {
    name: command.name(),
    description: command.description(),
    options: help.visibleOptions(command).map(describeOption),
    commands: help
      .visibleCommands(command)
      .filter(({ parent }) => parent === command)
      .map(describe),
    values: command.name() === 'completion' ? [...shells] : [],
  }
}

const describeOption = (option: Option) => ({
  long: option.long ?? '',
  short: option.short ?? '',
  description: option.description,
  takesValue: option.required || option.optional,
  values: option.argChoices ?? [],
  isPath: /file|directory|path/.test(option.flags),
})
