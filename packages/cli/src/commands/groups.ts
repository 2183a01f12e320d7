import type { GroupAnswer } from '@hatchway/host/api'
import { type Command, Option } from 'commander'
import { exitCodes, Failure } from '../failure.ts'
import { briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

interface AddOptions extends CommonOptions {
  folder: string
  jid: string
  name: string
  main?: boolean
  dialect: string
  trigger?: string
}

/** The names are the protocol's; written here too, so that `--help` need not load it. A test compares them. */
export const dialectChoices = ['hatchway', 'nanoclaw', 'novabot', 'mdclaw', 'pynchy']

export const columns: Column<GroupAnswer>[] = [
  { title: 'FOLDER', value: group => group.folder, flexible: true },
  { title: 'JID', value: group => group.jid, flexible: true },
  { title: 'NAME', value: group => group.name, flexible: true },
  { title: 'MAIN', value: group => (group.main ? 'main' : '-') },
  { title: 'DIALECT', value: group => group.dialect, spare: true },
  { title: 'WATCHED BY', value: group => group.mode ?? '-' },
  { title: 'LAST ACTIVITY', value: group => when(group.last_activity), brief: briefTime },
]

export function addGroups(program: Command): void {
  const groups = program.command('groups').description('the groups of agents that are served')

  common(
    groups.command('add').description('register a group and make its directories'),
    'groups add --folder family --jid chat:42 --name Family',
  )
    .requiredOption('--folder <name>', 'its directory below ipc/: letters, digits, - and _')
    .requiredOption('--jid <chat>', 'the chat it belongs to')
    .requiredOption('--name <text>', 'what people call it')
    .option('--main', 'it may do everything, for every group')
    .addOption(
      new Option('--dialect <name>', 'what its containers expect to read')
        .choices(dialectChoices)
        .default('hatchway'),
    )
    .option('--trigger <word>', 'the word in a message that calls the agent')
    .action(async ({ folder, jid, name, main = false, dialect, trigger, ...options }: AddOptions) => {
      const group = await withClient(
        options,
        (client, api) =>
          client.post('/groups', { folder, jid, name, main, dialect, trigger }, api.groupAnswer),
        { mayCreate: true },
      )
      if (options.json) return printJson(group)
      await printLine(`Group ${visible(group.folder)} is registered for ${visible(group.jid)}.`)
    })

  common(groups.command('list').description('all of them'), 'groups list --json').action(
    (options: CommonOptions) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(client.get('/groups', api.groupsAnswer)),
          columns,
          'There is no group yet. Add one with: npx hatchway groups add --help',
        ),
      ),
  )

  common(
    groups.command('remove').description('unregister a group; its tasks are cancelled, its files kept'),
    'groups remove family',
  )
    .argument('[folder]')
    .option('--folder <name>', 'the same')
    .action(async (argument: string | undefined, options: CommonOptions & { folder?: string }) => {
      const folder = argument ?? options.folder
      if (folder === undefined) throw new Failure('Say which folder: groups remove FOLDER.', exitCodes.usage)
      const result = await withClient(options, (client, api) =>
        client.delete(`/groups/${encodeURIComponent(folder)}`, api.resultAnswer),
      )
      if (options.json) return printJson(result)
      await printLine(`Group ${visible(folder)} is no longer registered. Its files are still there.`)
    })

  common(
    groups
      .command('wipe')
      .description('remove a group’s folder, home and worktree, and forget what it has read')
      .argument('<folder>', 'of a group that is, or was, registered')
      .option('--yes', 'the files cannot be brought back'),
    'groups wipe family --yes',
  ).action(async (folder: string, options: CommonOptions & { yes?: boolean }) => {
    if (!options.yes) {
      throw new Failure(
        'This removes all files of the group for good. Add --yes if you mean it.',
        exitCodes.usage,
      )
    }
    const result = await withClient(options, (client, api) =>
      client.post(`/groups/${encodeURIComponent(folder)}/wipe`, {}, api.wipedAnswer),
    )
    if (options.json) return printJson(result)
    await printLine(`The files of ${visible(folder)} are removed, and what it had read is forgotten.`)
    if (result.still_tainted.length > 0) {
      await printLine(
        `Still tainted, and given to its agent when that is used: ${result.still_tainted.map(visible).join(', ')}.`,
      )
    }
  })
}
