import { z } from 'zod'
import { isoOf } from '../store/entities/instant.ts'
import { clearedTaintAnswer, taintsAnswer } from './answers.ts'
import type { HostContext } from './host.ts'
import { notFound, type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('guard')

const ofContext = z.object({ group: z.string().min(1).max(256), context: z.string().min(1).max(256) })

/** What the groups' contexts have read. */
export const taintRoutes: readonly Route<HostContext>[] = [
  route.get('/taints', {
    summary: 'What the groups’ contexts have read that counts',
    role: 'viewer',
    answer: taintsAnswer,
    handle: ({ host }) =>
      host.store.taints.all().map(row => ({
        group: row.group,
        context: row.context,
        corrupted: moment(row.corruptedBy, row.corruptedAt),
        secret: moment(row.secretBy, row.secretAt),
      })),
  }),
  route.delete('/taints/:group/:context', {
    summary: 'Forget what a context has read',
    role: 'admin',
    params: ofContext,
    answer: clearedTaintAnswer,
    handle({ host }, { params: { group, context } }) {
      if (!host.clearTaint(group, context)) throw notFound('This context has read nothing that counts.')
      host.store.audit.append({
        at: Date.now(),
        group,
        actor: 'operator',
        action: 'clear_taint',
        summary: `forget what the context ${context} has read`,
        outcome: 'allowed',
        decidedBy: 'operator',
      })
      host.changes.note('groups')
      return { group, context }
    },
  }),
]

const moment = (by: string | null, at: number | null) =>
  by === null || at === null ? null : { by, at: isoOf(at) }
