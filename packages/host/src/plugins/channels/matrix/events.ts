import { z } from 'zod'

/** Other people's servers and apps write events: what does not have this form is no event, and disturbs nothing else. */
const eventSchema = z.object({
  type: z.string(),
  event_id: z.string().default(''),
  sender: z.string(),
  origin_server_ts: z.number().default(0),
  state_key: z.string().optional(),
  redacts: z.string().optional(),
  content: z.record(z.string(), z.unknown()),
  unsigned: z
    .object({ prev_content: z.object({ membership: z.string() }).optional().catch(undefined) })
    .optional()
    .catch(undefined),
})
export type Event = z.output<typeof eventSchema>

export function eventIn(value: unknown): Event | undefined {
  const parsed = eventSchema.safeParse(value)
  return parsed.success ? parsed.data : undefined
}
/** The events of a list, each with what the server sent: that is what is decrypted. */
export const eventsIn = (values: readonly unknown[] = []): { event: Event; raw: object }[] =>
  values.flatMap(raw => {
    const event = eventIn(raw)
    return event && typeof raw === 'object' && raw !== null ? [{ event, raw }] : []
  })

export const jidOf = (room: string): string => `matrix:${room}`
export const roomIn = (jid: string): string => jid.slice('matrix:'.length)
export const isOurs = (jid: string): boolean => /^matrix:![^\s/]{1,255}$/.test(jid)

export const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
export const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {}
