import { refusal, taskIdSchema } from '@hatchway/protocol'
import type { Hono } from 'hono'
import { z } from 'zod'
import type { OccurrenceRow } from '../store/agent-types.ts'
import type { Host } from '../types.ts'
import { ApiError } from './failure.ts'
import { check, done, whole } from './requests.ts'

const occurrenceAnswer = z.object({
  id: z.string(),
  due_at: z.iso.datetime(),
  /** somebody asked for it */
  manual: z.boolean(),
  status: z.enum(['claimed', 'running', 'done', 'failed', 'skipped']),
  run_id: z.string().nullable(),
  started_at: z.iso.datetime().nullable(),
  ended_at: z.iso.datetime().nullable(),
  result: z.string().nullable(),
  error: z.string().nullable(),
})
export const occurrencesAnswer = z.array(occurrenceAnswer)
export type OccurrenceAnswer = z.infer<typeof occurrenceAnswer>

const historyQuery = z.object({ limit: whole(1, 10_000).optional() })

/** When a task was due and what came of it, and running it now. */
export function addTaskRoutes(app: Hono, host: Pick<Host, 'store' | 'runTask'>): void {
  app.get('/tasks/:id/history', c => {
    const taskId = check(taskIdSchema, c.req.param('id'), 'id')
    const { limit = 100 } = check(historyQuery, c.req.query())
    if (!host.store.agents.task(taskId)) {
      throw new ApiError(refusal('not_found', 'There is no task with this id.'))
    }
    return c.json(host.store.agents.occurrences({ taskId, limit }).map(occurrenceOf))
  })
  app.post('/tasks/:id/run', c => {
    const taskId = check(taskIdSchema, c.req.param('id'), 'id')
    if (!host.runTask) {
      throw new ApiError(
        refusal('unavailable', 'Only a running daemon runs tasks. Start it with hatchway up.'),
      )
    }
    return done(c, host.runTask(taskId))
  })
}

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const occurrenceOf = (row: OccurrenceRow): OccurrenceAnswer => ({
  id: row.id,
  due_at: new Date(row.dueAt).toISOString(),
  manual: row.manual,
  status: row.status,
  run_id: row.runId,
  started_at: iso(row.startedAt),
  ended_at: iso(row.endedAt),
  result: row.result,
  error: row.error,
})
