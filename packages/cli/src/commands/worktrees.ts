import type { WorktreesAnswer } from '@hatchway/host/api'
import { call, family, list } from '../command.ts'
import { required } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<WorktreesAnswer[number]>[] = [
  { title: 'GROUP', value: worktree => worktree.group, flexible: true },
  { title: 'REPO', value: worktree => worktree.repo },
  { title: 'BRANCH', value: worktree => worktree.branch, flexible: true },
  { title: 'POLICY', value: worktree => worktree.policy },
  { title: 'PATH', value: worktree => worktree.path, flexible: true },
]

export default family('worktrees', 'inspect and merge worktrees of groups', [
  list('list', 'list groups that have a repository, and its path', {
    rows: (client, api) => client.get('/worktrees', api.worktreesAnswer),
    columns,
    empty: 'No group has a repository: see groups.<folder>.repo in the configuration.',
  }),
  call('sync', 'merge a group’s commits, as its agent can', {
    example: 'coder',
    input: { group: required('its folder') },
    progress: 'Merging',
    call: (client, api, { group }) => client.post(url`/worktrees/${group}/sync`, undefined, api.syncAnswer),
    print: ({ message }) => visible(message),
  }),
])
