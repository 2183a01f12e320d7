import { folderSchema, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import { type RunRow, runStatuses, type StepRow } from '../store/agent-types.ts'
import type { Store } from '../store/types.ts'
import { ApiError } from './failure.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { present, whole } from './requests.ts'
import { iso, notFound, type Route } from './route.ts'

export const runAnswer = z.object({
  id: z.string(),
  group: z.string(),
  kind: z.enum(['chat', 'task']),
  task_id: z.string().nullable(),
  occurrence_id: z.string().nullable(),
  sandbox: z.string(),
  image: z.string().nullable(),
  driver: z.string(),
  session_id: z.string().nullable(),
  status: z.enum(runStatuses),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  result: z.string().nullable(),
  error: z.string().nullable(),
})

const stepAnswer = z.object({
  at: z.iso.datetime(),
  kind: z.string(),
  name: z.string().nullable(),
  text: z.string(),
})

export const runsAnswer = z.array(runAnswer)
export const transcriptAnswer = runAnswer.extend({ steps: z.array(stepAnswer) })

export type RunAnswer = z.infer<typeof runAnswer>
export type TranscriptAnswer = z.infer<typeof transcriptAnswer>

const runsQuery = z.object({
  group: folderSchema.optional(),
  status: z.enum(runStatuses).optional(),
  task: z.string().max(128).optional(),
  limit: whole(1, 10_000).optional(),
})
const runId = z.string().min(1).max(128)
/** An id is long: its beginning will do, if only one of the latest runs begins with it. */
const searched = 1000

/** What agents did: runs, and the steps of each. */
export const runRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/runs',
    summary: 'The newest runs of agents, in the order in which they began',
    tag: 'runs',
    role: 'viewer',
    query: runsQuery,
    answer: runsAnswer,
    handle: ({ host }, { query: { group, status, task, limit = 100 } }) =>
      host.store.agents.runs({ ...present({ group, status, taskId: task }), limit }).map(runOf),
  }),
  route({
    method: 'get',
    path: '/runs/:id',
    summary: 'One run with its transcript; the beginning of its id will do',
    tag: 'runs',
    role: 'viewer',
    params: z.object({ id: runId }),
    answer: transcriptAnswer,
    handle({ host }, { params }) {
      const run = find(host.store, params.id)
      return { ...runOf(run), steps: host.store.agents.steps(run.id).map(stepOf) }
    },
  }),
  route({
    method: 'post',
    path: '/runs/:id/stop',
    summary:
      'Stop what the agent is doing in this run; the beginning of its id will do, and so does its group',
    tag: 'runs',
    role: 'approver',
    params: z.object({ id: runId }),
    answer: runAnswer,
    handle({ host }, { params, caller }) {
      const { agents } = host.store
      const run = agents.runs({ group: params.id, status: 'running' }).at(-1) ?? find(host.store, params.id)
      if (!host.agents()?.queue.stopTurn(run.group, caller.name, run.id))
        throw new ApiError(refusal('wrong_state', 'Nothing is running there that could be stopped.'))
      return runOf(agents.run(run.id) ?? run)
    },
  }),
]

function find({ agents }: Pick<Store, 'agents'>, id: string): RunRow {
  const exact = agents.run(id)
  if (exact) return exact
  const [first, ...others] = agents.runs({ limit: searched }).filter(run => run.id.startsWith(id))
  if (!first) throw notFound(`No run has the id ${id}.`)
  if (others.length > 0) {
    throw new ApiError(refusal('conflict', `${others.length + 1} runs begin with ${id}. Write more of it.`))
  }
  return first
}

const runOf = (run: RunRow): RunAnswer => ({
  id: run.id,
  group: run.group,
  kind: run.kind,
  task_id: run.taskId,
  occurrence_id: run.occurrenceId,
  sandbox: run.sandbox,
  image: run.image,
  driver: run.driver,
  session_id: run.sessionId,
  status: run.status,
  started_at: iso(run.startedAt),
  ended_at: run.endedAt === null ? null : iso(run.endedAt),
  result: run.result,
  error: run.error,
})

const stepOf = ({ at, kind, name, text }: StepRow) => ({ at: iso(at), kind, name, text })
