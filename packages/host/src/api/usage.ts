import { folderSchema } from '@hatchway/protocol'
import type { Hono } from 'hono'
import { z } from 'zod'
import type { Store } from '../store/types.ts'
import { check, present } from './requests.ts'

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
export function addUsageRoutes(app: Hono, store: Pick<Store, 'agents'>): void {
  app.get('/usage', c => {
    const rows = store.agents.usage(present(check(usageQuery, c.req.query())))
    return c.json(
      rows.map(({ day, group, model, requests, inputTokens, outputTokens }) => ({
        day,
        group,
        model,
        requests,
        input_tokens: inputTokens,
        output_tokens: outputTokens,
      })) satisfies UsageAnswer,
    )
  })
}
