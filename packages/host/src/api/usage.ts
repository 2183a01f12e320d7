import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { present } from './requests.ts'
import type { Route } from './route.ts'

export const usageAnswer = z.array(
  z.object({
    day: z.string(),
    group: z.string(),
    model: z.string(),
    requests: z.number(),
    input_tokens: z.number(),
    output_tokens: z.number(),
  }),
)
export type UsageAnswer = z.infer<typeof usageAnswer>

const usageQuery = z.object({ group: folderSchema.optional(), since: z.iso.date().optional() })

/** What the groups' agents asked of models, by day. */
export const usageRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/usage',
    summary: 'What the groups’ agents asked of models, by day',
    tag: 'runs',
    role: 'viewer',
    query: usageQuery,
    answer: usageAnswer,
    handle: ({ host }, { query }) =>
      host.store.agents
        .usage(present(query))
        .map(({ day, group, model, requests, inputTokens, outputTokens }) => ({
          day,
          group,
          model,
          requests,
          input_tokens: inputTokens,
          output_tokens: outputTokens,
        })),
  }),
]
