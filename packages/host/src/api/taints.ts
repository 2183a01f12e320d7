import { folderSchema, refusal } from '@hatchway/protocol'
import type { Hono } from 'hono'
import { z } from 'zod'
import type { TaintRow } from '../store/taints.ts'
import type { Store } from '../store/types.ts'
import { ApiError } from './failure.ts'
import { check } from './requests.ts'

const since = z.object({ by: z.string(), at: z.iso.datetime() }).nullable()

export const taintsAnswer = z.array(
  z.object({
    group: z.string(),
    context: z
      .string()
      .describe('`session`: the conversation that goes on; a run, a task, or a shelf of a service'),
    corrupted: since.describe('what brought in strangers’ words first, and when'),
    secret: since.describe('what brought in secrets first, and when'),
  }),
)
export type TaintsAnswer = z.infer<typeof taintsAnswer>

export const clearedTaintAnswer = z.object({ group: z.string(), context: z.string() })

const contextName = z.string().min(1).max(256)

/** What the groups' contexts have read. */
export function addTaintRoutes(app: Hono, store: Pick<Store, 'taints' | 'audit'>): void {
  app.get('/taints', c => c.json(store.taints.all().map(answerOf)))
  app.delete('/taints/:group/:context', c => {
    const group = check(folderSchema, c.req.param('group'), 'group')
    const context = check(contextName, c.req.param('context'), 'context')
    if (!store.taints.clear(group, context)) {
      throw new ApiError(refusal('not_found', 'This context has read nothing that counts.'))
    }
    store.audit.append({
      at: Date.now(),
      group,
      actor: 'operator',
      action: 'clear_taint',
      summary: `forget what the context ${context} has read`,
      outcome: 'allowed',
      decidedBy: 'operator',
    })
    return c.json({ group, context })
  })
}

const moment = (by: string | null, at: number | null) =>
  by === null || at === null ? null : { by, at: new Date(at).toISOString() }

const answerOf = (row: TaintRow): TaintsAnswer[number] => ({
  group: row.group,
  context: row.context,
  corrupted: moment(row.corruptedBy, row.corruptedAt),
  secret: moment(row.secretBy, row.secretAt),
})
