import { z } from 'zod'
import { path, whole } from '../../config/values.ts'

/** Repositories that groups may work on, each group in a worktree of its own (`groups.<folder>.repo`). */
const repoSchema = z.strictObject({
  path: path.describe('The repository on this host: a checkout or a bare one.'),
  branch: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/, 'must be the name of a branch')
    .default('main')
    .describe('The branch that agents begin from and their work ends in.'),
  policy: z
    .enum(['merge', 'branch'])
    .default('merge')
    .describe('`merge`: their commits go on top of the branch. `branch`: they become a branch for review.'),
  remote: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be the name of a remote')
    .optional()
    .describe('The remote that is fetched from and pushed to. Left out: nothing leaves this host.'),
  test: z
    .string()
    .min(1)
    .max(10_000)
    .optional()
    .describe('A shell command that must succeed in the merged tree, in a sandbox. Left out: none.'),
  testMs: whole(1000, 3_600_000).default(600_000).describe('How long it may take.'),
  mergeAtEnd: z.boolean().default(false).describe('Whether the end of a scheduled run merges its commits.'),
})

export const reposSchema = z
  .record(
    z
      .string()
      .regex(
        /^[a-z][a-z0-9-]{0,31}$/,
        'must be 1 to 32 small letters, digits and "-", starting with a letter',
      ),
    repoSchema,
  )
  .default({})
  .describe(
    'Git repositories that groups may work on, by name; see docs/worktrees.md. Not in the environment.',
  )
  .meta({ allowed: 'an object of repositories by name', otherwise: 'none' })

export type Repos = z.output<typeof reposSchema>
export type Repo = Repos[string]

/** Of a group: the name of the repository in `repos` that its agent works on. */
export const groupRepoSchema = z.string().min(1)

/** Groups whose `repo` is none of these. */
export const unknownRepos = (
  repos: Repos,
  groups: Readonly<Record<string, { repo?: string | undefined }>>,
): { setting: string; problem: string }[] =>
  Object.entries(groups).flatMap(([folder, { repo }]) => {
    if (repo === undefined || Object.hasOwn(repos, repo)) return []
    const known = Object.keys(repos).join(', ') || 'none'
    return [
      {
        setting: `groups.${folder}.repo`,
        problem: `is ${JSON.stringify(repo)}, which repos does not name; there are: ${known}.`,
      },
    ]
  })
