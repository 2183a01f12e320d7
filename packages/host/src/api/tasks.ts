import { folderSchema, payloads, resultSchema, taskIdSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { isoOf } from '../store/entities/instant.ts'
import { changedTaskAnswer, occurrence, occurrencesAnswer, tasksAnswer, upcomingAnswer } from './answers.ts'
import type { Host } from './host.ts'
import { flag, present, whole } from './requests.ts'
import { notFound, type Route, resultOf, routesOf, unavailable } from './route.ts'

interface TaskContext {
  host: Pick<Host, 'store' | 'perform' | 'runTask'>
}
const route = routesOf<TaskContext>('tasks')

const byId = z.object({ id: taskIdSchema })
const { jid: _, ...newTask } = payloads.schedule_task.shape
const newTaskRequest = z.strictObject({ ...newTask, group: folderSchema })
const taskChangeRequest = payloads.update_task.omit({ task_id: true }).strict()

const moved = {
  pause: { type: 'pause_task', summary: 'Stop a task until it is resumed' },
  resume: { type: 'resume_task', summary: 'Let a paused task run again' },
  cancel: { type: 'cancel_task', summary: 'End a task for good; its history is kept' },
} as const
const move = (action: keyof typeof moved) =>
  route.post(`/tasks/:id/${action}`, {
    summary: moved[action].summary,
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
  route.get('/tasks', {
    summary: 'Tasks that are active or paused, or all of them',
    role: 'viewer',
    query: z.object({ group: folderSchema.optional(), all: flag.optional() }),
    answer: tasksAnswer,
    handle: ({ host }, { query: { group, all = false } }) =>
      host.store.tasks({ ...present({ group }), open: !all }),
  }),
  route.get('/tasks/upcoming', {
    summary: 'When active tasks will run, soonest first; at most 1000',
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
      return runs.map(({ at, ...run }) => ({ ...run, at: isoOf(at) }))
    },
  }),
  route.post('/tasks', {
    summary: 'Schedule a task for a group',
    role: 'admin',
    body: newTaskRequest,
    answer: changedTaskAnswer,
    handle: async ({ host }, { body: payload }) =>
      changedTaskAnswer.parse(resultOf(await host.perform({ type: 'schedule_task', payload }))),
  }),
  route.patch('/tasks/:id', {
    summary: 'Change the fields of a task that are given; its next run is computed again',
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
  route.get('/tasks/:id/history', {
    summary: 'The times a task was due, and what came of each',
    role: 'viewer',
    params: byId,
    query: z.object({ limit: whole(1, 10_000).optional() }),
    answer: occurrencesAnswer,
    handle({ host }, { params, query: { limit = 100 } }) {
      if (!host.store.agents.task(params.id)) throw notFound('There is no task with this id.')
      return host.store.agents.occurrences({ taskId: params.id, limit }).map(occurrence.of)
    },
  }),
  route.post('/tasks/:id/run', {
    summary: 'Run a task now, beside its schedule',
    role: 'admin',
    params: byId,
    answer: resultSchema,
    handle({ host }, { params }) {
      if (!host.runTask) throw unavailable('Only a running daemon runs tasks. Start it with hatchway up.')
      return resultOf(host.runTask(params.id))
    },
  }),
]
