import type { GroupAnswer } from '@hatchway/host/api'
import { dialectNames } from '@hatchway/protocol/names'
import { call, family, list } from '../command.ts'
import { usageError } from '../failure.ts'
import { timeColumn } from '../format.ts'
import { choice, flag, optional, required, requiredText, text, withDefault } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

export const columns: Column<GroupAnswer>[] = [
  { title: 'FOLDER', value: group => group.folder, flexible: true },
  { title: 'JID', value: group => group.jid, flexible: true },
  { title: 'NAME', value: group => group.name, flexible: true },
  { title: 'MAIN', value: group => (group.main ? 'main' : '-') },
  { title: 'DIALECT', value: group => group.dialect, spare: true },
  { title: 'WATCHED BY', value: group => group.mode ?? '-' },
  timeColumn('LAST ACTIVITY', group => group.last_activity),
]

/** `groups remove FOLDER` or `groups remove --folder NAME`. */
function folderOf({ group, folder }: { group: string | undefined; folder: string | undefined }): string {
  const named = group ?? folder
  if (named === undefined) throw usageError('Name the folder: groups remove FOLDER.')
  return named
}

export default family('groups', 'manage groups', [
  call('add', 'register a group and create its directories', {
    example: '--folder family --jid chat:42 --name Family',
    creates: true,
    input: {
      folder: requiredText('name', 'its folder below ipc/: letters, digits, - and _'),
      jid: requiredText('chat', 'the chat it belongs to'),
      name: requiredText('text', 'its display name'),
      main: flag('a main group: it may act for every group'),
      dialect: withDefault(choice('name', 'the file format of its containers', dialectNames), 'hatchway'),
      trigger: text('word', 'the word in a message that calls the agent'),
    },
    call: (client, api, { folder, jid, name, main = false, dialect, trigger }) =>
      client.post('/groups', { folder, jid, name, main, dialect, trigger }, api.groupAnswer),
    print: group => `Group ${visible(group.folder)} is registered for ${visible(group.jid)}.`,
  }),
  list('list', 'list all groups', {
    example: '--json',
    rows: (client, api) => client.get('/groups', api.groupsAnswer),
    columns,
    empty: 'No groups yet. Add one with: npx hatchway groups add --help',
  }),
  call('remove', 'unregister a group; its tasks are cancelled, its files stay', {
    example: 'family',
    input: { group: optional('its folder'), folder: text('name', 'another way to name the folder') },
    call: (client, api, given) => client.delete(url`/groups/${folderOf(given)}`, api.resultAnswer),
    print: (_, given) =>
      `Group ${visible(folderOf(given))} is no longer registered. Its files are still there.`,
  }),
  call('wipe', 'delete a group’s folder, home and worktree, and clear its taint', {
    example: 'family --yes',
    input: {
      folder: required('of a group that is or was registered'),
      yes: flag('confirm: the files cannot be recovered'),
    },
    async call(client, api, { folder, yes }) {
      if (!yes) throw usageError('This deletes all files of the group for good. Add --yes to confirm.')
      return client.post(url`/groups/${folder}/wipe`, {}, api.wipedAnswer)
    },
    print: ({ still_tainted }, { folder }) => [
      `The files of ${visible(folder)} are deleted, and its taint is cleared.`,
      ...(still_tainted.length > 0
        ? [`Still tainted, and passed to its agent on use: ${still_tainted.map(visible).join(', ')}.`]
        : []),
    ],
  }),
])
