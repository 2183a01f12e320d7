import {
  dialectNameSchema,
  folderSchema,
  groupSchema,
  jidSchema,
  outcomeSchema,
  resultSchema,
  taskSchema,
} from '@hatchway/protocol'
import { z } from 'zod'
import type { CommandRow, MessageRow } from '../store/types.ts'
import type { CommandEvent, Host } from '../types.ts'

/** What the API takes and answers. The application makes these, the client checks them, people script against them. */
export const statusAnswer = z.object({
  version: z.string(),
  pid: z.int(),
  data: z.string(),
  started_at: z.iso.datetime(),
  durability: z.enum(['full', 'process']),
  groups: z.int(),
  handled: z.int(),
  refused: z.int(),
  busy: z.boolean(),
})

export const groupAnswer = groupSchema.extend({
  mode: z.enum(['events', 'polling']).optional().describe('how its files are noticed, while a daemon runs'),
})

export const newGroupRequest = z.strictObject({
  folder: folderSchema,
  jid: jidSchema,
  name: z.string().min(1).max(256),
  main: z.boolean().default(false),
  dialect: dialectNameSchema.default('hatchway'),
  trigger: z.string().min(1).max(128).optional(),
  requires_trigger: z.boolean().optional(),
  channel: z.string().min(1).max(64).optional(),
})

export const messageAnswer = z.object({
  id: z.int(),
  group: z.string(),
  jid: z.string(),
  kind: z.enum(['text', 'reaction', 'question', 'approval']),
  text: z.string(),
  sender: z.string().nullable(),
  status: z.enum(['pending', 'sent', 'failed']),
  created_at: z.iso.datetime(),
  sent_at: z.iso.datetime().nullable(),
  attempts: z.int(),
  error: z.string().nullable(),
  message_id: z.string().nullable(),
  speech: z.object({ text: z.string(), title: z.string().optional() }).nullable(),
})

export const errorAnswer = z.object({
  id: z.string(),
  original_file: z.string().nullable(),
  error: z.string(),
  processed_at: z.string(),
  source_group: z.string(),
  directory: z.string().nullable(),
  code: z.string(),
  type: z.string().nullable(),
  kept: z.boolean(),
  size: z.number(),
  count: z.number(),
})

export const errorContentAnswer = errorAnswer.extend({
  content: z
    .object({ base64: z.string(), truncated: z.boolean() })
    .nullable()
    .optional()
    .describe('only when asked for; null where there is no file to show'),
})

export const commandAnswer = z.object({
  seq: z.int(),
  group: z.string(),
  directory: z.string().optional(),
  file: z.string(),
  dialect: dialectNameSchema.nullable(),
  type: z.string().nullable(),
  request_id: z.string().nullable(),
  outcome: outcomeSchema.nullable().describe('null: accepted, and the answer follows'),
  received_at: z.iso.datetime(),
  took_us: z.number(),
  waited_ms: z.number().optional(),
  repeated: z.boolean().optional(),
})

export const eventAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('command'), command: commandAnswer }),
  z.object({ kind: z.literal('heartbeat'), at: z.iso.datetime() }),
  z.object({ kind: z.literal('dropped'), count: z.int() }),
])

export const groupsAnswer = z.array(groupAnswer)
export const tasksAnswer = z.array(taskSchema)
export const messagesAnswer = z.array(messageAnswer)
export const errorsAnswer = z.array(errorAnswer)
export const commandsAnswer = z.array(commandAnswer)
export { resultSchema as resultAnswer }

export type StatusAnswer = z.infer<typeof statusAnswer>
export type GroupAnswer = z.infer<typeof groupAnswer>
export type MessageAnswer = z.infer<typeof messageAnswer>
export type ErrorAnswer = z.infer<typeof errorAnswer>
export type ErrorContentAnswer = z.infer<typeof errorContentAnswer>
export type CommandAnswer = z.infer<typeof commandAnswer>
export type EventAnswer = z.infer<typeof eventAnswer>

const iso = (ms: number) => new Date(ms).toISOString()

export const statusOf = (host: Host): StatusAnswer => {
  const { startedAt, ...status } = host.status()
  return { ...status, started_at: startedAt }
}

export const messageOf = (row: MessageRow): MessageAnswer => ({
  id: row.id,
  group: row.group,
  jid: row.jid,
  kind: row.kind,
  text: row.text,
  sender: row.sender,
  status: row.status,
  created_at: iso(row.createdAt),
  sent_at: row.sentAt === null ? null : iso(row.sentAt),
  attempts: row.attempts,
  error: row.error,
  message_id: row.messageId,
  speech: row.speech,
})

export const commandOf = (row: CommandRow | CommandEvent): CommandAnswer => ({
  seq: row.seq,
  group: row.group,
  ...('directory' in row && { directory: row.directory }),
  file: row.file,
  dialect: row.dialect,
  type: row.type,
  request_id: row.requestId,
  outcome: row.outcome,
  received_at: iso(row.receivedAt),
  took_us: row.tookUs,
  ...('waitedMs' in row && { waited_ms: row.waitedMs, repeated: row.repeated }),
})
