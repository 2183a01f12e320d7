import { z } from 'zod'
import { accessRoutes } from './access/routes.ts'
import { approvalRoutes } from './approvals.ts'
import { auditRoutes } from './audit.ts'
import { chatRoutes } from './chat.ts'
import { commandRoutes } from './commands.ts'
import { deployRoutes } from './deploys.ts'
import { errorRoutes } from './errors.ts'
import { feedRoutes } from './feed.ts'
import { groupRoutes } from './groups.ts'
import type { HostContext } from './host-context.ts'
import { jobRoutes } from './jobs.ts'
import { messageRoutes } from './messages.ts'
import { openApiDocument, type Published } from './openapi.ts'
import { healthRoutes, metricsRoutes } from './plain.ts'
import { type Route, routesWith } from './route.ts'
import { runRoutes } from './runs.ts'
import { serviceRoutes } from './services.ts'
import { periodicRoutes } from './sessions.ts'
import { statusRoutes } from './status.ts'
import { taintRoutes } from './taints.ts'
import { taskRoutes } from './tasks.ts'
import { upkeepRoutes } from './upkeep.ts'
import { usageRoutes } from './usage.ts'
import { worktreeRoutes } from './worktrees.ts'

/** Everything that can be asked for. On the daemon's socket these lie at the top, for browsers below /api/host. */
export const hostRoutes: readonly Route<HostContext>[] = [
  ...statusRoutes,
  ...feedRoutes,
  ...commandRoutes,
  ...groupRoutes,
  ...periodicRoutes,
  ...taskRoutes,
  ...jobRoutes,
  ...messageRoutes,
  ...errorRoutes,
  ...runRoutes,
  ...usageRoutes,
  ...serviceRoutes,
  ...approvalRoutes,
  ...taintRoutes,
  ...auditRoutes,
  ...worktreeRoutes,
  ...deployRoutes,
  ...upkeepRoutes,
]

const route = routesWith<unknown>()
let document: ReturnType<typeof openApiDocument> | undefined

export const documentRoutes: readonly Route<unknown>[] = [
  route({
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    tag: 'operations',
    role: 'viewer',
    answer: z.record(z.string(), z.unknown()),
    handle() {
      document ??= openApiDocument(published)
      return document
    },
  }),
]

/** As browsers find them. */
export const published: readonly Published[] = [
  { prefix: '/api', routes: accessRoutes },
  { prefix: '/api', routes: chatRoutes },
  { prefix: '/api', routes: documentRoutes },
  { prefix: '/api/host', routes: hostRoutes },
  { prefix: '', routes: [...healthRoutes, ...metricsRoutes] },
]

export { chatRoutes, healthRoutes, metricsRoutes }
