import { z } from 'zod'
import { requestIdSchema, toolNameSchema } from './identifiers.ts'

/** What a group's agent is shown of the services it may ask, and how a request that takes its time tells of it. */
const jsonObjectSchema = z.record(z.string(), z.unknown())

export const serviceToolSchema = z.object({
  name: toolNameSchema.describe('what `call_service` calls it'),
  title: z.string(),
  description: z.string(),
  service: z.string().describe('who does it: `memory`, `calendar`, `mcp:github`'),
  input_schema: jsonObjectSchema.describe('JSON Schema of the arguments'),
  output_schema: jsonObjectSchema.optional().describe('JSON Schema of the result, where it is known'),
  annotations: z.object({
    readOnlyHint: z.boolean().optional(),
    destructiveHint: z.boolean().optional(),
    idempotentHint: z.boolean().optional(),
    openWorldHint: z.boolean().optional(),
  }),
  answers: z
    .enum(['facts', 'content'])
    .describe(
      'the result is an object of facts, or the result of an MCP tool: content, structuredContent, isError',
    ),
  timeout_ms: z.int().min(1).describe('after which the host answers that it took too long'),
  command: z
    .string()
    .optional()
    .describe('a command to post with the arguments as its payload, instead of `call_service`'),
})
export type ServiceListing = z.infer<typeof serviceToolSchema>

/** Commands that not every host carries out, or not for every group, or not at every time. */
export const hostOfferSchema = z.object({
  command: z.enum([
    'reset_context',
    'finished_work',
    'sync_worktree',
    'schedule_host_job',
    'create_periodic_agent',
    'deploy',
  ]),
  timeout_ms: z.int().min(1).describe('after which the host answers that it took too long'),
})
export type HostOffer = z.infer<typeof hostOfferSchema>

/** `services.json`: all that this group may ask for. */
export const servicesSchema = z.object({
  tools: z.array(serviceToolSchema),
  questions: z
    .object({ timeout_ms: z.int().min(1) })
    .nullable()
    .describe('whether and for how long people can be asked'),
  commands: z.array(hostOfferSchema).default([]).describe('what else the host does for this group'),
})
export type Services = z.infer<typeof servicesSchema>

/** `responses/{id}.progress.json`, replaced while the request is at work and gone when it is answered. */
export const progressSchema = z.object({
  version: z.literal(1),
  id: requestIdSchema,
  progress: z.number(),
  total: z.number().optional(),
  message: z.string().optional(),
  until: z.iso
    .datetime()
    .optional()
    .describe('a person may take until then to decide; whoever waits has to wait as long'),
})
export type Progress = z.infer<typeof progressSchema>

/** `todos.json`: the group's list, written by the host alone. */
export const todoSchema = z.object({
  id: z.string().regex(/^[0-9a-f]{8}$/),
  content: z.string(),
  done: z.boolean(),
  created_at: z.iso.datetime(),
})
export type Todo = z.infer<typeof todoSchema>
