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

test('every command has help with an example', async () => {
  const program = new Command()
  for (const load of Object.values(commands)) (await load()).default(program)
  const leaves = program.commands.flatMap(one => (one.commands.length === 0 ? [one] : one.commands))
  expect(leaves.length).toBeGreaterThan(Object.keys(commands).length)
  // They need neither a data directory nor a host.
  const bare: readonly string[] = ['demo', 'password', 'completion']
  for (const leaf of leaves) {
    let help = ''
    const writeOut = (text: string) => {
      help += text
    }
    leaf.configureOutput({ writeOut }).outputHelp()
    const path = leaf.parent === program ? leaf.name() : `${leaf.parent?.name()} ${leaf.name()}`
    expect(help).toContain(`$ npx hatchway ${path} `)
    if (bare.includes(path)) continue
    for (const option of ['--json', '--data <directory>', '--config <file>']) expect(help).toContain(option)
  }
})
