import { z } from 'zod'
import type { Host } from './host.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { iso, type Route, unavailable } from './route.ts'

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

function servicesOf(host: Host) {
  const known = host.services()
  if (!known) throw unavailable('Only a running daemon has services. Start one.')
  return known
}

/** What agents can ask for, and what they wait for. */
export const serviceRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/services',
    summary: 'What agents can ask for, and whether it can be used',
    tag: 'services',
    role: 'viewer',
    answer: servicesAnswer,
    handle: ({ host }) =>
      servicesOf(host)
        .catalogue.services()
        .map(({ name, ok, text, tools }) => ({
          name,
          ok,
          text,
          tools: tools.map(tool => ({
            name: tool.name,
            title: tool.title,
            description: tool.description,
            groups: tool.groups,
            labels: tool.labels,
            timeout_ms: tool.kind === 'later' ? tool.timeoutMs : null,
            repeatable: tool.kind === 'later' && tool.repeatable,
          })),
        })),
  }),
  route({
    method: 'get',
    path: '/requests',
    summary: 'What agents wait for',
    tag: 'services',
    role: 'viewer',
    answer: requestsAnswer,
    handle: ({ host }) =>
      servicesOf(host)
        .requestQueue.open()
        .map(({ seq, group, reply, tool, createdAt, expiresAt }) => ({
          seq,
          group,
          id: reply?.id ?? null,
          tool,
          created_at: iso(createdAt),
          expires_at: iso(expiresAt),
        })),
  }),
]
