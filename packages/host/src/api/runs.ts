import { folderSchema, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import { costOf } from '../config/usage.ts'
import { runStatuses } from '../store/entities/run.ts'
import type { RunRow, Store } from '../store/types.ts'
import { run, runAnswer, runsAnswer, step, transcriptAnswer, usage, usageAnswer } from './answers.ts'
import { ApiError } from './failure.ts'
import type { HostContext } from './host.ts'
import { present, whole } from './requests.ts'
import { notFound, type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('runs')

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
  route.get('/runs', {
    summary: 'The newest runs of agents, in the order in which they began',
    role: 'viewer',
    query: runsQuery,
    answer: runsAnswer,
    handle: ({ host }, { query: { group, status, task, limit = 100 } }) =>
      host.store.agents.runs({ ...present({ group, status, taskId: task }), limit }).map(run.of),
  }),
  route.get('/runs/:id', {
    summary: 'One run with its transcript; the beginning of its id will do',
    role: 'viewer',
    params: z.object({ id: runId }),
    answer: transcriptAnswer,
    handle({ host }, { params }) {
      const found = find(host.store, params.id)
      return { ...run.of(found), steps: host.store.agents.steps(found.id).map(step.of) }
    },
  }),
  route.post('/runs/:id/stop', {
    summary:
      'Stop what the agent is doing in this run; the beginning of its id will do, and so does its group',
    role: 'approver',
    params: z.object({ id: runId }),
    answer: runAnswer,
    handle({ host }, { params, caller }) {
      const { agents } = host.store
      const found = agents.runs({ group: params.id, status: 'running' }).at(-1) ?? find(host.store, params.id)
      if (!host.agents()?.queue.stopTurn(found.group, caller.name, found.id))
        throw new ApiError(refusal('wrong_state', 'Nothing is running there that could be stopped.'))
      return run.of(agents.run(found.id) ?? found)
    },
  }),
  route.get('/usage', {
    summary: 'What the groups’ agents asked of models, by day',
    role: 'viewer',
    query: z.object({ group: folderSchema.optional(), since: z.iso.date().optional() }),
    answer: usageAnswer,
    handle: ({ host: { store, config } }, { query }) =>
      store.agents.usage(present(query)).map(used => ({
        ...usage.of(used),
        cost: costOf(config.usage.prices, used) ?? null,
        currency: config.usage.currency,
      })),
  }),
]

function find({ agents }: Pick<Store, 'agents'>, id: string): RunRow {
  const exact = agents.run(id)
  if (exact) return exact
  const [first, ...others] = agents.runs({ limit: searched }).filter(each => each.id.startsWith(id))
  if (!first) throw notFound(`No run has the id ${id}.`)
  if (others.length > 0) {
    throw new ApiError(refusal('conflict', `${others.length + 1} runs begin with ${id}. Write more of it.`))
  }
  return first
}
