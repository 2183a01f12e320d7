import { channelRoutes } from './channels/routes.ts'
import { deployRoutes } from './deploy/routes.ts'
import { jobRoutes } from './jobs/routes.ts'
import { lentServerRoutes } from './mcp/routes.ts'
import { periodicRoutes } from './periodic/routes.ts'
import { worktreeRoutes } from './worktrees/routes.ts'

/** The routes of the plugins that ship with Hatchway, for the documentation and for tests of all routes. */
export const builtInRoutes = [
  {
    path: '',
    routes: [
      ...worktreeRoutes,
      ...jobRoutes,
      ...periodicRoutes,
      ...lentServerRoutes,
      ...channelRoutes,
      ...deployRoutes,
    ],
  },
]
