import { z } from 'zod'
import { contextModeSchema, scheduleTypeSchema } from './commands.ts'
import { folderSchema, jidSchema, taskIdSchema } from './identifiers.ts'
import { dialectNames } from './names.ts'

export { dialectNames }

/** What the host shows its agents of its state, before a dialect gives it the shape its containers expect. */
export const taskStatusSchema = z.enum(['active', 'paused', 'completed', 'cancelled'])

export const hostJobSchema = z.object({
  name: z.string(),
  command: z.string(),
  cwd: z.string().nullable(),
  user: z.string().nullable(),
  timeout_seconds: z.number(),
})
export type HostJob = z.infer<typeof hostJobSchema>

export const taskSchema = z.object({
  id: taskIdSchema,
  group: folderSchema.describe('the group that runs it'),
  jid: jidSchema,
  created_by: folderSchema.describe('the group that asked for it; its rights count when the task runs'),
  prompt: z.string(),
  script: z.string().nullable(),
  model: z.string().nullable(),
  schedule_type: scheduleTypeSchema,
  schedule_value: z.string(),
  timezone: z.string(),
  context_mode: contextModeSchema,
  status: taskStatusSchema,
  next_run: z.iso.datetime().nullable(),
  last_run: z.iso.datetime().nullable(),
  last_result: z.string().nullable(),
  created_at: z.iso.datetime(),
  job: hostJobSchema.optional().describe('a command on the host, which runs in place of an agent'),
})
export type Task = z.infer<typeof taskSchema>

export const dialectNameSchema = z.enum(dialectNames)
export type DialectName = z.infer<typeof dialectNameSchema>

export const groupSchema = z.object({
  folder: folderSchema,
  jid: jidSchema,
  name: z.string(),
  main: z.boolean(),
  dialect: dialectNameSchema,
  trigger: z.string().nullable(),
  requires_trigger: z.boolean(),
  channel: z.string().nullable(),
  added_at: z.iso.datetime(),
  last_activity: z.iso.datetime().nullable(),
})
export type Group = z.infer<typeof groupSchema>

/** A chat that a channel knows, and that is no group's. */
export interface OtherChat {
  jid: string
  name: string
  /** null: nothing was said there, as far as the host knows */
  last_activity: string | null
}
