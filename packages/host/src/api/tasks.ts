import { folderSchema, payloads, resultSchema, taskIdSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { OccurrenceRow } from '../store/agent-types.ts'
import { changedTaskAnswer, tasksAnswer } from './answers.ts'
import type { Host } from './host.ts'
import { flag, present, whole } from './requests.ts'
import { iso, notFound, type Route, resultOf, routesWith, unavailable } from './route.ts'

export const occurrenceAnswer = z.object({
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

export const upcomingAnswer = z.array(
  z.object({
    task_id: z.string(),
    group: z.string(),
    prompt: z.string().describe('its beginning'),
    at: z.iso.datetime(),
    more: z
      .literal(true)
      .optional()
      .describe('the task runs again after this within the days asked for, and that is not listed'),
  }),
)
export type UpcomingAnswer = z.infer<typeof upcomingAnswer>

interface TaskContext {
  host: Pick<Host, 'store' | 'perform' | 'runTask'>
}
const route = routesWith<TaskContext>()

const byId = z.object({ id: taskIdSchema })
const { jid: _, ...newTask } = payloads.schedule_task.shape
const newTaskRequest = z.strictObject({ ...newTask, group: folderSchema })
const taskChangeRequest = payloads.update_task.omit({ task_id: true }).strict()

const tag = 'tasks'
const moved = {
  pause: { type: 'pause_task', summary: 'Stop a task until it is resumed' },
  resume: { type: 'resume_task', summary: 'Let a paused task run again' },
  cancel: { type: 'cancel_task', summary: 'End a task for good; its history is kept' },
} as const
const move = (action: keyof typeof moved) =>
  route({
    method: 'post',
    path: `/tasks/:id/${action}`,
    summary: moved[action].summary,
    tag,
    role: 'admin',
    params: byId,
    answer: changedTaskAnswer,
    handle: async ({ host }, { params }) =>
      changedTaskAnswer.parse(
        resultOf(await host.perform({ type: moved[action].type, payload: { task_id: params.id } })),
      ),
  })

/** What is scheduled, when it was due and what came of it, and changing that. */
export const taskRoutes: readonly Route<TaskContext>[] = [
  route({
    method: 'get',
    path: '/tasks',
    summary: 'Tasks that are active or paused, or all of them',
    tag,
    role: 'viewer',
    query: z.object({ group: folderSchema.optional(), all: flag.optional() }),
    answer: tasksAnswer,
    handle: ({ host }, { query: { group, all = false } }) =>
      host.store.tasks({ ...present({ group }), open: !all }),
  }),
  route({
    method: 'get',
    path: '/tasks/upcoming',
    summary: 'When active tasks will run, soonest first; at most 1000',
    tag,
    role: 'viewer',
    query: z.object({ days: whole(1, 366).optional(), group: folderSchema.optional() }),
    answer: upcomingAnswer,
    async handle({ host }, { query: { days = 31, group } }) {
      // The command line knows these routes' answers, and need not know how schedules are computed.
      const { upcomingRuns } = await import('./upcoming.ts')
      const runs = await upcomingRuns(host.store.tasks({ ...present({ group }), open: true }), {
        from: Date.now(),
        until: Date.now() + days * 86_400_000,
      })
      return runs.map(({ at, ...run }) => ({ ...run, at: iso(at) }))
    },
  }),
  route({
    method: 'post',
    path: '/tasks',
    summary: 'Schedule a task for a group',
    tag,
    role: 'admin',
    body: newTaskRequest,
    answer: changedTaskAnswer,
    handle: async ({ host }, { body: payload }) =>
      changedTaskAnswer.parse(resultOf(await host.perform({ type: 'schedule_task', payload }))),
  }),
  route({
    method: 'patch',
    path: '/tasks/:id',
    summary: 'Change the fields of a task that are given; its next run is computed again',
    tag,
    role: 'admin',
    params: byId,
    body: taskChangeRequest,
    answer: changedTaskAnswer,
    handle: async ({ host }, { params, body }) =>
      changedTaskAnswer.parse(
        resultOf(await host.perform({ type: 'update_task', payload: { ...body, task_id: params.id } })),
      ),
  }),
  move('pause'),
  move('resume'),
  move('cancel'),
  route({
    method: 'get',
    path: '/tasks/:id/history',
    summary: 'The times a task was due, and what came of each',
    tag,
    role: 'viewer',
    params: byId,
    query: z.object({ limit: whole(1, 10_000).optional() }),
    answer: occurrencesAnswer,
    handle({ host }, { params, query: { limit = 100 } }) {
      if (!host.store.agents.task(params.id)) throw notFound('There is no task with this id.')
      return host.store.agents.occurrences({ taskId: params.id, limit }).map(occurrenceOf)
    },
  }),
  route({
    method: 'post',
    path: '/tasks/:id/run',
    summary: 'Run a task now, beside its schedule',
    tag,
    role: 'admin',
    params: byId,
    answer: resultSchema,
    handle({ host }, { params }) {
      if (!host.runTask) throw unavailable('Only a running daemon runs tasks. Start it with hatchway up.')
      return resultOf(host.runTask(params.id))
    },
  }),
]

const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms))

export const occurrenceOf = (row: OccurrenceRow): OccurrenceAnswer => ({
  id: row.id,
  due_at: iso(row.dueAt),
  manual: row.manual,
  status: row.status,
  run_id: row.runId,
  started_at: isoOrNull(row.startedAt),
  ended_at: isoOrNull(row.endedAt),
  result: row.result,
  error: row.error,
})
