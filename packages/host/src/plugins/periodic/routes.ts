import { payloads } from '@hatchway/protocol'
import { z } from 'zod'
import { type Route, resultOf, routesOf, unavailable } from '../../api/route.ts'
import type { PeriodicAgents } from './agents.ts'

export const periodicAnswer = z.object({
  folder: z.string(),
  jid: z.string(),
  task_id: z.string(),
  next_run: z.iso.datetime(),
  status: z.enum(['created', 'changed']),
})

const route = routesOf<PeriodicAgents | undefined>('groups')

export const periodicRoutes: readonly Route<PeriodicAgents | undefined>[] = [
  route.post('/periodic-agents', {
    summary: 'Make a group and a task that wakes its agent',
    role: 'admin',
    body: payloads.create_periodic_agent,
    answer: periodicAnswer,
    async handle(agents, { body }) {
      if (!agents) throw unavailable('Only a running daemon does it. Start one.')
      return periodicAnswer.parse(resultOf(await agents.create(body, undefined)))
    },
  }),
]
