import { folderSchema, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import { ApiError } from '../../api/failure.ts'
import { notFound, type Route, routesOf, unavailable } from '../../api/route.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { Repositories } from './repositories.ts'
import type { Worktrees } from './worktrees.ts'

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

/** undefined: no daemon runs here */
type RouteContext =
  | { repositories: Repositories; worktrees: Pick<Worktrees, 'sync' | 'work'> | undefined }
  | undefined

const route = routesOf<RouteContext>('worktrees')

function running(context: RouteContext) {
  if (!context) throw unavailable('Only a running daemon has worktrees. Start one.')
  return context
}

/** What groups have of repositories, and syncing it for them. */
export const worktreeRoutes: readonly Route<RouteContext>[] = [
  route.get('/worktrees', {
    summary: 'What groups have of repositories',
    role: 'viewer',
    answer: worktreesAnswer,
    handle: context =>
      running(context)
        .repositories.all()
        .map(({ folder, name, repo: { branch, policy }, worktree }) => ({
          ...{ group: folder, repo: name, branch, policy, path: worktree },
        })),
  }),
  route.post('/worktrees/:folder/sync', {
    summary: 'Merge the commits of a group’s worktree',
    role: 'admin',
    params: z.object({ folder: folderSchema }),
    answer: syncAnswer,
    async handle(context, { params: { folder } }) {
      const { repositories, worktrees } = running(context)
      if (!worktrees || !repositories.find(folder)) {
        throw notFound(`No repository is configured for the group ${folder}.`)
      }
      try {
        const signal = AbortSignal.timeout(worktrees.work.timeoutMs)
        return syncAnswer.parse(await worktrees.sync(folder, { signal, actor: 'operator' }))
      } catch (error) {
        if (error instanceof ServiceRefusal) throw new ApiError(refusal(error.code, error.message))
        throw error
      }
    },
  }),
]
