import { payloads, resultSchema, taskIdSchema, taskSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { OccurrenceRow } from '../store/agent-types.ts'
import type { Store } from '../store/types.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { flag, whole } from './requests.ts'
import { notFound, type Route, resultOf } from './route.ts'
import { occurrenceAnswer, occurrenceOf } from './tasks.ts'

const jobRunAnswer = occurrenceAnswer.extend({
  exit_code: z.int().nullable().describe('null: a signal ended it, it runs, or it never began'),
  signal: z.string().nullable(),
  timed_out: z.boolean(),
})
const jobAnswer = taskSchema.required({ job: true }).extend({ last: jobRunAnswer.nullable() })

export const jobsAnswer = z.array(jobAnswer)
export const jobRunsAnswer = z.array(jobRunAnswer)
export const wholeJobRunAnswer = jobRunAnswer.extend({
  task_id: z.string(),
  output: z.string().describe('what it printed; its beginning and its end, where it is too long'),
  dropped: z.int().describe('bytes of it that are not kept'),
})

export type JobAnswer = z.infer<typeof jobAnswer>
export type JobRunAnswer = z.infer<typeof jobRunAnswer>
export type WholeJobRunAnswer = z.infer<typeof wholeJobRunAnswer>

/** Commands on the host: which there are, when they ran, what they printed. The rest is as with any task. */
export const jobRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/jobs',
    summary: 'Commands that are scheduled on the host',
    tag: 'jobs',
    role: 'viewer',
    query: z.object({ all: flag.optional() }),
    answer: jobsAnswer,
    handle: ({ host: { store } }, { query: { all = false } }) =>
      store.jobs.jobs({ open: !all }).flatMap(({ job, ...task }) => {
        if (!job) return []
        const [last] = store.agents.occurrences({ taskId: task.id, limit: 1 })
        return [{ ...task, job, last: last ? runOf(store, last) : null }]
      }),
  }),
  route({
    method: 'post',
    path: '/jobs',
    summary: 'Schedule a command on the host',
    tag: 'jobs',
    role: 'admin',
    body: payloads.schedule_host_job.strict(),
    answer: resultSchema,
    handle: async ({ host }, { body: payload }) =>
      resultOf(await host.perform({ type: 'schedule_host_job', payload })),
  }),
  route({
    method: 'get',
    path: '/jobs/:id/runs',
    summary: 'When a command ran, and how each time ended',
    tag: 'jobs',
    role: 'viewer',
    params: z.object({ id: taskIdSchema }),
    query: z.object({ limit: whole(1, 10_000).optional() }),
    answer: jobRunsAnswer,
    handle({ host: { store } }, { params: { id: taskId }, query: { limit = 100 } }) {
      if (!store.agents.task(taskId)?.job) throw notFound('There is no job with this id.')
      return store.agents.occurrences({ taskId, limit }).map(row => runOf(store, row))
    },
  }),
  route({
    method: 'get',
    path: '/job-runs/:id',
    summary: 'One run of a command, with what it printed',
    tag: 'jobs',
    role: 'viewer',
    params: z.object({ id: z.string().min(1).max(256) }),
    answer: wholeJobRunAnswer,
    handle({ host: { store } }, { params }) {
      const occurrence = store.agents.occurrence(params.id)
      if (!occurrence || !store.agents.task(occurrence.taskId)?.job) {
        throw notFound('No run of a job has this id.')
      }
      const { output = '', dropped = 0 } = store.jobs.run(occurrence.id) ?? {}
      return { ...runOf(store, occurrence), task_id: occurrence.taskId, output, dropped }
    },
  }),
]

const runOf = (store: Pick<Store, 'jobs'>, occurrence: OccurrenceRow): JobRunAnswer => {
  const run = store.jobs.run(occurrence.id)
  return {
    ...occurrenceOf(occurrence),
    exit_code: run?.exitCode ?? null,
    signal: run?.signal ?? null,
    timed_out: run?.timedOut ?? false,
  }
}
