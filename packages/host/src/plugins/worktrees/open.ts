import { bindRoutes } from '../../api/route.ts'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { aboutWorktree } from './answers.ts'
import { syncCommand, syncTraits } from './command.ts'
import { createRepositories, sharedRepository } from './repositories.ts'
import { worktreeRoutes } from './routes.ts'
import type { Repos } from './settings.ts'
import { isSyncStep } from './sync-steps.ts'

export async function open(host: BuiltInHost<Repos, string>): Promise<Contributions> {
  const repositories = createRepositories(host)
  const { find } = repositories
  const active = host.isDaemon && Object.keys(host.settings).length > 0 ? await openWorktrees() : undefined
  const worktrees = active?.worktrees

  /** Loaded only where there is a repository to work on. */
  async function openWorktrees() {
    const { createWorktrees } = await import('./worktrees.ts')
    const { createFinishedWork } = await import('./finished-work.ts')
    const worktrees = createWorktrees(host, repositories)
    return { worktrees, finishedWork: createFinishedWork(host, worktrees) }
  }

  return {
    commands: [syncCommand({ repositoryOf: find, timeoutMs: worktrees?.work.timeoutMs })],
    routes: bindRoutes(worktreeRoutes, host.isDaemon ? { repositories, worktrees } : undefined),
    ...(active
      ? {
          work: [active.worktrees.work, active.finishedWork],
          runs: {
            prepare: active.worktrees.prepare,
            mounts: active.worktrees.mounts,
            instructions(folder) {
              const found = find(folder)
              return found && aboutWorktree(folder, found.repo)
            },
            shares(folder) {
              const found = find(folder)
              return found && sharedRepository(found.name)
            },
            isHarmless: (folder, command) => find(folder) !== undefined && isSyncStep(command),
            // With the run's end its commits go to where a sync would bring them.
            finish(folder) {
              const found = find(folder)
              return found?.repo.mergeAtEnd
                ? { work: active.finishedWork.name, traits: syncTraits(found) }
                : undefined
            },
            opened: active.worktrees.opened,
          },
          stop: active.worktrees.stop,
        }
      : {}),
  }
}
