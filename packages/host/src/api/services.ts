import { refusal } from '@hatchway/protocol'
import type { Hono } from 'hono'
import { z } from 'zod'
import type { Host } from '../types.ts'
import { ApiError } from './failure.ts'

const label = z.enum(['yes', 'no', 'forbidden']).optional()

export const servicesAnswer = z.array(
  z.object({
    name: z.string(),
    ok: z.boolean(),
    text: z.string().describe('whether it can be used, and if not why'),
    tools: z.array(
      z.object({
        name: z.string(),
        title: z.string(),
        description: z.string(),
        groups: z.union([z.enum(['all', 'main']), z.array(z.string())]),
        labels: z.object({
          public_source: label,
          secret_data: label,
          public_sink: label,
          dangerous_writes: label,
        }),
        timeout_ms: z.number().nullable().describe('null: it is done with the command itself'),
        repeatable: z.boolean().describe('whether it is asked again after a restart in the middle'),
      }),
    ),
  }),
)
export type ServicesAnswer = z.infer<typeof servicesAnswer>

export const requestsAnswer = z.array(
  z.object({
    seq: z.int(),
    group: z.string(),
    id: z.string().nullable(),
    tool: z.string(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
  }),
)
export type RequestsAnswer = z.infer<typeof requestsAnswer>

/** What agents can ask for, and what they wait for. */
export function addServiceRoutes(app: Hono, host: Pick<Host, 'services'>): void {
  const services = () => {
    const known = host.services()
    if (!known) throw new ApiError(refusal('unavailable', 'Only a running daemon has services. Start one.'))
    return known
  }
  app.get('/services', c =>
    c.json(
      services()
        .catalogue.services()
        .map(({ name, ok, text, tools }) => ({
          name,
          ok,
          text,
          tools: tools.map(tool => ({
            name: tool.name,
            title: tool.title,
            description: tool.description,
            groups: typeof tool.groups === 'string' ? tool.groups : [...tool.groups],
            labels: tool.labels,
            timeout_ms: tool.kind === 'later' ? tool.timeoutMs : null,
            repeatable: tool.kind === 'later' && tool.repeatable,
          })),
        })) satisfies ServicesAnswer,
    ),
  )
  app.get('/requests', c =>
    c.json(
      services()
        .desk.open()
        .map(({ seq, group, reply, tool, createdAt, expiresAt }) => ({
          seq,
          group,
          id: reply?.id ?? null,
          tool,
          created_at: new Date(createdAt).toISOString(),
          expires_at: new Date(expiresAt).toISOString(),
        })) satisfies RequestsAnswer,
    ),
  )
}
