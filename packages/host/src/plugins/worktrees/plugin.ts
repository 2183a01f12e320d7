import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { groupRepoSchema, reposSchema } from './settings.ts'

/** Groups that work on repositories, each in a worktree of its own (`repos`, `groups.<folder>.repo`, `sync_worktree`). */
export const worktrees = definePlugin({
  name: 'worktrees',
  version,
  settings: reposSchema,
  groupSettings: groupRepoSchema,
  checks: () => import('./checks.ts'),
  load: () => import('./open.ts'),
})
