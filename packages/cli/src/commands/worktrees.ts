import type { WorktreesAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { once, printList } from '../list.ts'
import { type CommonOptions, common } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<WorktreesAnswer[number]>[] = [
  { title: 'GROUP', value: worktree => worktree.group, flexible: true },
  { title: 'REPO', value: worktree => worktree.repo },
  { title: 'BRANCH', value: worktree => worktree.branch, flexible: true },
  { title: 'POLICY', value: worktree => worktree.policy },
  { title: 'WHERE', value: worktree => worktree.path, flexible: true },
]

export function addWorktrees(program: Command): void {
  const worktrees = program.command('worktrees').description('repositories that groups work on')
  common(
    worktrees.command('list').description('the groups that have one, and where it lies'),
    'worktrees list',
  ).action((options: CommonOptions) =>
    withClient(options, (client, api) =>
      printList(
        options,
        once(client.get('/worktrees', api.worktreesAnswer)),
        columns,
        'No group has a repository: see groups.<folder>.repo in the configuration.',
      ),
    ),
  )
  common(
    worktrees.command('sync').description('merge what a group has committed, as its agent can'),
    'worktrees sync coder',
  )
    .argument('<group>', 'its folder')
    .action(async (group: string, options: CommonOptions) => {
      const answer = await withProgress('Merging', () =>
        withClient(options, (client, api) =>
          client.post(`/worktrees/${encodeURIComponent(group)}/sync`, undefined, api.syncAnswer),
        ),
      )
      if (options.json) return printJson(answer)
      await printLine(visible(answer.message))
    })
}
