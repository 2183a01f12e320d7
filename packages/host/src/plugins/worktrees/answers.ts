import { ServiceRefusal } from '../../services/define.ts'
import type { Report } from './inside.ts'
import { listedFiles } from './scripts.ts'
import type { Repo } from './settings.ts'

/** What a sync came to. */
export interface SyncAnswer {
  [fact: string]: unknown
  /** whether the branch has the commits now */
  merged: boolean
  commits: number
  revision: string
  message: string
}

export const branchOf = (folder: string): string => `hatchway/${folder}`

/** What the group's agent is told of it. */
export const aboutWorktree = (folder: string, { branch, policy }: Repo): string =>
  `You have a git worktree of your own in $HATCHWAY_PROJECT_DIR, on the branch ${branchOf(folder)}. Commit your work there, then use your tool sync_worktree_to_main: it puts your commits on top of ${branch} and ${policy === 'merge' ? 'merges them' : 'offers them for review'}. You cannot push. If it reports a conflict, edit the files it names, git add them, run git rebase --continue, and sync again.`

const list = (report: Report): string => report.files.map(file => `\n${file}`).join('')

/** Undefined: there is nothing in the way. */
export function refusalFor(report: Report, folder: string, { branch }: Repo): ServiceRefusal | undefined {
  switch (report.state) {
    case 'dirty': {
      const count = Number(report.facts.get('count'))
      const more = count > listedFiles ? `\nand ${count - listedFiles} more` : ''
      return new ServiceRefusal(
        'dirty_tree',
        `The worktree has changes that are not committed. Commit them, remove them, or have git ignore them, and sync again:${list(report)}${more}`,
      )
    }
    case 'conflict':
      return new ServiceRefusal(
        'merge_conflict',
        `Your commits and ${branch} change the same lines. A rebase is under way in your worktree and waits for you. Edit these files until they are as they should be, git add them, run git rebase --continue, and sync again when it is through (git rebase --abort gives it up):${list(report)}`,
      )
    case 'rebasing':
      return new ServiceRefusal(
        'merge_conflict',
        'A rebase is under way in your worktree, and no file is in conflict any more. Run git rebase --continue, and sync again when it is through (git rebase --abort gives it up).',
      )
    case 'elsewhere':
      return new ServiceRefusal(
        'wrong_state',
        `Only commits on ${branchOf(folder)} are synced, and ${report.facts.get('branch') ?? 'another branch'} is checked out. Bring your commits there: git checkout ${branchOf(folder)}, then git merge or git cherry-pick.`,
      )
    case 'failed': {
      const complaints = report.complaints === '' ? '' : `\n${report.complaints}`
      return new ServiceRefusal(
        'service_failed',
        `The worktree cannot be worked with: ${report.facts.get('reason') ?? 'no reason was given'}.${complaints}`,
      )
    }
    default:
      return undefined
  }
}

export const countOf = (commits: number): string => (commits === 1 ? '1 commit' : `${commits} commits`)
