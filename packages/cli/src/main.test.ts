import { Command } from 'commander'
import { expect, test } from 'vitest'
import { commands } from './main.ts'

test('every command is listed under the name it adds itself with', async () => {
  for (const [name, load] of Object.entries(commands)) {
    const program = new Command()
    const { default: add } = await load()
    add(program)
    expect(program.commands.map(command => command.name())).toContain(name)
    for (const command of program.commands) expect(Object.keys(commands)).toContain(command.name())
  }
})
