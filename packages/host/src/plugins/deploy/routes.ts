import { z } from 'zod'
import { whole } from '../../api/requests.ts'
import { notFound, type Route, resultOf, routesOf, unavailable } from '../../api/route.ts'
import { begunDeployAnswer, deploy, deployAnswer, deploysAnswer } from './answers.ts'
import type { Deploys } from './deploys.ts'
import type { DeployTable } from './table.ts'

export interface DeployRoutesContext {
  table: DeployTable
  /** undefined: no daemon runs */
  deploys: Deploys | undefined
}

const route = routesOf<DeployRoutesContext>('deploys')

/** Restarts with other code: what became of them, and asking for one. */
export const deployRoutes: readonly Route<DeployRoutesContext>[] = [
  route.get('/deploys', {
    summary: 'The newest restarts with other code, oldest first',
    role: 'viewer',
    query: z.object({ limit: whole(1, 1000).optional() }),
    answer: deploysAnswer,
    handle: ({ table }, { query: { limit = 20 } }) => table.list(limit).toReversed().map(deploy.of),
  }),
  route.get('/deploys/:id', {
    summary: 'One restart with other code',
    role: 'viewer',
    params: z.object({ id: whole(1, Number.MAX_SAFE_INTEGER) }),
    answer: deployAnswer,
    handle({ table }, { params }) {
      const row = table.deploy(params.id)
      if (!row) throw notFound('There is no deploy with this id.')
      return deploy.of(row)
    },
  }),
  route.post('/deploys', {
    summary: 'Restart with the code as it is now',
    role: 'admin',
    body: z.strictObject({ rebuild: z.boolean().default(false) }),
    answer: begunDeployAnswer,
    async handle({ deploys }, { body: { rebuild } }) {
      if (!deploys) throw unavailable('Only a running daemon is deployed. Start it with hatchway supervise.')
      return begunDeployAnswer.parse(resultOf(await deploys.begin(rebuild)))
    },
  }),
]
