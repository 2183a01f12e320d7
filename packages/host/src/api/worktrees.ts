import { folderSchema, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import { ServiceRefusal } from '../services/define.ts'
import { ApiError } from './failure.ts'
import type { Host } from './host.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { notFound, type Route, unavailable } from './route.ts'

export const worktreesAnswer = z.array(
  z.object({
    group: z.string(),
    repo: z.string(),
    branch: z.string(),
    policy: z.enum(['merge', 'branch']),
    path: z.string(),
  }),
)
export type WorktreesAnswer = z.infer<typeof worktreesAnswer>

export const syncAnswer = z.looseObject({
  merged: z.boolean(),
  commits: z.int(),
  revision: z.string(),
  message: z.string(),
})

function worktreesOf(host: Host) {
  const works = host.hostWork()
  if (!works) throw unavailable('Only a running daemon has worktrees. Start one.')
  return works.worktrees
}

/** What groups have of repositories, and syncing it for them. */
export const worktreeRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/worktrees',
    summary: 'What groups have of repositories',
    tag: 'worktrees',
    role: 'viewer',
    answer: worktreesAnswer,
    handle: ({ host }) =>
      (worktreesOf(host)?.all() ?? []).map(({ group, repo, branch, policy, path }) => ({
        ...{ group, repo, branch, policy, path },
      })),
  }),
  route({
    method: 'post',
    path: '/worktrees/:folder/sync',
    summary: 'Merge the commits of a group’s worktree',
    tag: 'worktrees',
    role: 'admin',
    params: z.object({ folder: folderSchema }),
    answer: syncAnswer,
    async handle({ host }, { params: { folder } }) {
      const known = worktreesOf(host)
      if (!known?.of(folder)) throw notFound(`No repository is configured for the group ${folder}.`)
      try {
        const signal = AbortSignal.timeout(known.work.timeoutMs)
        return syncAnswer.parse(await known.sync(folder, { signal, actor: 'operator' }))
      } catch (error) {
        if (error instanceof ServiceRefusal) throw new ApiError(refusal(error.code, error.message))
        throw error
      }
    },
  }),
]
