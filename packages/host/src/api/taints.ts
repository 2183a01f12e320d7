import { z } from 'zod'
import type { TaintRow } from '../store/taints.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { iso, notFound, type Route } from './route.ts'

const since = z.object({ by: z.string(), at: z.iso.datetime() }).nullable()

export const taintsAnswer = z.array(
  z.object({
    group: z.string().describe('a folder; `repo:…` for what was merged into a repository'),
    context: z
      .string()
      .describe(
        '`session`: the group’s folder and home; a task or its result, its name, a shelf of a service',
      ),
    corrupted: since.describe('what brought in strangers’ words first, and when'),
    secret: since.describe('what brought in secrets first, and when'),
  }),
)
export type TaintsAnswer = z.infer<typeof taintsAnswer>

export const clearedTaintAnswer = z.object({ group: z.string(), context: z.string() })

const ofContext = z.object({ group: z.string().min(1).max(256), context: z.string().min(1).max(256) })

/** What the groups' contexts have read. */
export const taintRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/taints',
    summary: 'What the groups’ contexts have read that counts',
    tag: 'guard',
    role: 'viewer',
    answer: taintsAnswer,
    handle: ({ host }) => host.store.taints.all().map(answerOf),
  }),
  route({
    method: 'delete',
    path: '/taints/:group/:context',
    summary: 'Forget what a context has read',
    tag: 'guard',
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
  by === null || at === null ? null : { by, at: iso(at) }

const answerOf = (row: TaintRow): TaintsAnswer[number] => ({
  group: row.group,
  context: row.context,
  corrupted: moment(row.corruptedBy, row.corruptedAt),
  secret: moment(row.secretBy, row.secretAt),
})
