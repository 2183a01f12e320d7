import { z } from 'zod'
import { accessRoutes } from './access/routes.ts'
import { approvalRoutes } from './approvals.ts'
import { auditRoutes } from './audit.ts'
import { chatRoutes } from './chat.ts'
import { commandRoutes } from './commands.ts'
import { errorRoutes } from './errors.ts'
import { feedRoutes } from './feed.ts'
import { groupRoutes } from './groups.ts'
import type { HostContext } from './host.ts'
import { messageRoutes } from './messages.ts'
import { modelRoutes } from './models.ts'
import { openApiDocument, type Published } from './openapi.ts'
import { pairingRoutes } from './pairings.ts'
import { healthRoutes, metricsRoutes } from './plain.ts'
import { type Description, type PluginRoutes, type Route, routesOf } from './route.ts'
import { runRoutes } from './runs.ts'
import { serviceRoutes } from './services.ts'
import { statusRoutes } from './status.ts'
import { taintRoutes } from './taints.ts'
import { taskRoutes } from './tasks.ts'
import { upkeepRoutes } from './upkeep.ts'

/** Everything that can be asked for. On the daemon's socket these lie at the top, for browsers below /api/host. */
export const hostRoutes: readonly Route<HostContext>[] = [
  ...statusRoutes,
  ...feedRoutes,
  ...commandRoutes,
  ...groupRoutes,
  ...taskRoutes,
  ...messageRoutes,
  ...errorRoutes,
  ...runRoutes,
  ...modelRoutes,
  ...serviceRoutes,
  ...approvalRoutes,
  ...pairingRoutes,
  ...taintRoutes,
  ...auditRoutes,
  ...upkeepRoutes,
]

const route = routesOf<PluginRoutes>('operations')

export const documentRoutes: readonly Route<PluginRoutes>[] = [
  route.get('/openapi.json', {
    summary: 'This document',
    role: 'viewer',
    answer: z.record(z.string(), z.unknown()),
    handle: plugins => openApiDocument(publishedWith(plugins)),
  }),
]

/** As browsers find them. */
export const publishedWith = (
  plugins: readonly { path: string; routes: readonly Description[] }[],
): readonly Published[] => [
  { prefix: '/api', routes: accessRoutes },
  { prefix: '/api', routes: chatRoutes },
  { prefix: '/api', routes: documentRoutes },
  { prefix: '/api/host', routes: hostRoutes },
  ...plugins.map(({ path, routes }) => ({ prefix: `/api/host${path}`, routes })),
  { prefix: '', routes: [...healthRoutes, ...metricsRoutes] },
]

export { chatRoutes, healthRoutes, metricsRoutes }
