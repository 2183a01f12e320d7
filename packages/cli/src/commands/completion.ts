import type { Command, Option } from 'commander'
import { type Branch, completionFor, shells } from '../completion.ts'
import { write } from '../output.ts'

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script that lets the shell complete commands and options')
    .argument('<shell>', shells.join(', '))
    .addHelpText(
      'after',
      '\nExample:\n  $ npx hatchway completion bash >> ~/.bashrc\n  $ npx hatchway completion fish > ~/.config/fish/completions/hatchway.fish',
    )
    .action(async (shell: string) => {
      await write(completionFor(shell, branchOf(program)))
    })
}

function branchOf(command: Command): Branch {
  const help = command.createHelp()
  return {
    name: command.name(),
    description: command.description(),
    options: help.visibleOptions(command).map(optionOf),
    commands: help
      .visibleCommands(command)
      .filter(({ parent }) => parent === command)
      .map(branchOf),
    values: command.name() === 'completion' ? [...shells] : [],
  }
}

const optionOf = (option: Option) => ({
  long: option.long ?? '',
  short: option.short ?? '',
  description: option.description,
  takesValue: option.required || option.optional,
  values: option.argChoices ?? [],
  isPath: /file|directory|path/.test(option.flags),
})
