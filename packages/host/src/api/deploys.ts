import { errorCodeSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { DeployRow } from '../store/deploys.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { whole } from './requests.ts'
import { iso, notFound, type Route, resultOf, unavailable } from './route.ts'

export const deployAnswer = z.object({
  id: z.int(),
  group: z.string().nullable().describe('whose agent asked; null: an operator'),
  from: z.string(),
  to: z.string(),
  branch: z.string().nullable(),
  rebuild: z.boolean(),
  status: z.enum(['building', 'restarting', 'done', 'rolled_back', 'failed']),
  code: errorCodeSchema.nullable(),
  error: z.string().nullable(),
  created_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
})
export const deploysAnswer = z.array(deployAnswer)
export type DeployAnswer = z.infer<typeof deployAnswer>

export const begunDeployAnswer = z.object({ id: z.int(), from: z.string(), to: z.string() })

/** Restarts with other code: what became of them, and asking for one. */
export const deployRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/deploys',
    summary: 'The newest restarts with other code, oldest first',
    tag: 'deploys',
    role: 'viewer',
    query: z.object({ limit: whole(1, 1000).optional() }),
    answer: deploysAnswer,
    handle: ({ host }, { query: { limit = 20 } }) =>
      host.store.deploys.list(limit).toReversed().map(answerOf),
  }),
  route({
    method: 'get',
    path: '/deploys/:id',
    summary: 'One restart with other code',
    tag: 'deploys',
    role: 'viewer',
    params: z.object({ id: whole(1, Number.MAX_SAFE_INTEGER) }),
    answer: deployAnswer,
    handle({ host }, { params }) {
      const row = host.store.deploys.deploy(params.id)
      if (!row) throw notFound('There is no deploy with this id.')
      return answerOf(row)
    },
  }),
  route({
    method: 'post',
    path: '/deploys',
    summary: 'Restart with the code as it is now',
    tag: 'deploys',
    role: 'admin',
    body: z.strictObject({ rebuild: z.boolean().default(false) }),
    answer: begunDeployAnswer,
    async handle({ host }, { body: { rebuild } }) {
      const works = host.hostWork()
      if (!works) throw unavailable('Only a running daemon is deployed. Start it with hatchway supervise.')
      return begunDeployAnswer.parse(resultOf(await works.deploys.begin(rebuild)))
    },
  }),
]

const answerOf = (row: DeployRow): DeployAnswer => ({
  id: row.id,
  group: row.group,
  from: row.from,
  to: row.to,
  branch: row.branch,
  rebuild: row.rebuild,
  status: row.status,
  code: row.code,
  error: row.error,
  created_at: iso(row.createdAt),
  ended_at: row.endedAt === null ? null : iso(row.endedAt),
})
