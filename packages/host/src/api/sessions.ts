import { payloads } from '@hatchway/protocol'
import { z } from 'zod'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { type Route, resultOf, unavailable } from './route.ts'

export const periodicAnswer = z.object({
  folder: z.string(),
  jid: z.string(),
  task_id: z.string(),
  next_run: z.iso.datetime(),
  status: z.enum(['created', 'changed']),
})

/** Agents that are made with their task. */
export const periodicRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'post',
    path: '/periodic-agents',
    summary: 'Make a group and a task that wakes its agent',
    tag: 'groups',
    role: 'admin',
    body: payloads.create_periodic_agent,
    answer: periodicAnswer,
    async handle({ host }, { body }) {
      const works = host.hostWork()
      if (!works) throw unavailable('Only a running daemon does it. Start one.')
      return periodicAnswer.parse(resultOf(await works.periodic.create(body, undefined)))
    },
  }),
]
