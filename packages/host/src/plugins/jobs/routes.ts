import { payloads, resultSchema, taskIdSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { occurrence } from '../../api/answers.ts'
import { flag, whole } from '../../api/requests.ts'
import { notFound, type Route, resultOf, routesOf } from '../../api/route.ts'
import type { BuiltInHost } from '../../plugin-api/types.ts'
import type { OccurrenceRow } from '../../store/types.ts'
import { type JobRunAnswer, jobRunsAnswer, jobsAnswer, wholeJobRunAnswer } from './answers.ts'
import type { JobRunTable } from './table.ts'

export interface JobRoutesContext {
  host: Pick<BuiltInHost, 'store' | 'perform'>
  table: JobRunTable
}

const route = routesOf<JobRoutesContext>('jobs')

/** Commands on the host: which there are, when they ran, what they printed. The rest is as with any task. */
export const jobRoutes: readonly Route<JobRoutesContext>[] = [
  route.get('/jobs', {
    summary: 'Commands that are scheduled on the host',
    role: 'viewer',
    query: z.object({ all: flag.optional() }),
    answer: jobsAnswer,
    handle: ({ host: { store }, table }, { query: { all = false } }) =>
      store.tasks({ open: !all }).flatMap(({ job, ...task }) => {
        if (!job) return []
        const [last] = store.agents.occurrences({ taskId: task.id, limit: 1 })
        return [{ ...task, job, last: last ? runOf(table, last) : null }]
      }),
  }),
  route.post('/jobs', {
    summary: 'Schedule a command on the host',
    role: 'admin',
    body: payloads.schedule_host_job.strict(),
    answer: resultSchema,
    handle: async ({ host }, { body: payload }) =>
      resultOf(await host.perform({ type: 'schedule_host_job', payload })),
  }),
  route.get('/jobs/:id/runs', {
    summary: 'When a command ran, and how each time ended',
    role: 'viewer',
    params: z.object({ id: taskIdSchema }),
    query: z.object({ limit: whole(1, 10_000).optional() }),
    answer: jobRunsAnswer,
    handle({ host: { store }, table }, { params: { id: taskId }, query: { limit = 100 } }) {
      if (!store.agents.task(taskId)?.job) throw notFound('There is no job with this id.')
      return store.agents.occurrences({ taskId, limit }).map(row => runOf(table, row))
    },
  }),
  route.get('/job-runs/:id', {
    summary: 'One run of a command, with what it printed',
    role: 'viewer',
    params: z.object({ id: z.string().min(1).max(256) }),
    answer: wholeJobRunAnswer,
    handle({ host: { store }, table }, { params }) {
      const row = store.agents.occurrence(params.id)
      if (!row || !store.agents.task(row.taskId)?.job) {
        throw notFound('No run of a job has this id.')
      }
      const { output = '', dropped = 0 } = table.run(row.id) ?? {}
      return { ...runOf(table, row), task_id: row.taskId, output, dropped }
    },
  }),
]

const runOf = (table: JobRunTable, row: OccurrenceRow): JobRunAnswer => {
  const run = table.run(row.id)
  return {
    ...occurrence.of(row),
    exit_code: run?.exitCode ?? null,
    signal: run?.signal ?? null,
    timed_out: run?.timedOut ?? false,
  }
}
