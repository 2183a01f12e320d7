import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import {
  type Group,
  groupSchema,
  outcomeSchema,
  replyAddressSchema,
  type Task,
  taskSchema,
} from '@hatchway/protocol'
import { z } from 'zod'
import type { Attachment } from './file-types.ts'
import type { CommandRow, MessageRow } from './types.ts'

/** Between rows and objects. What comes out of the database goes through a schema, as everything that comes in does. */
export type Row = Record<string, SQLOutputValue>

const iso = (ms: SQLOutputValue | undefined) => (typeof ms === 'number' ? new Date(ms).toISOString() : null)
const ms = (instant: string | null) => (instant === null ? null : Date.parse(instant))
export const parsed = (json: SQLOutputValue | undefined): unknown =>
  typeof json === 'string' ? JSON.parse(json) : null

export const groupFromRow = (row: Row): Group =>
  groupSchema.parse({
    folder: row.folder,
    jid: row.jid,
    name: row.name,
    main: row.main === 1,
    dialect: row.dialect,
    trigger: row.trigger_text,
    requires_trigger: row.requires_trigger === 1,
    channel: row.channel,
    added_at: iso(row.added_at),
    last_activity: iso(row.last_activity),
  })

export const groupValues = (group: Group): SQLInputValue[] => [
  group.folder,
  group.jid,
  group.name,
  group.main ? 1 : 0,
  group.dialect,
  group.trigger,
  group.requires_trigger ? 1 : 0,
  group.channel,
  ms(group.added_at),
  ms(group.last_activity),
]

export const taskFromRow = (row: Row): Task =>
  taskSchema.parse({
    ...row,
    group: row.group_folder,
    next_run: iso(row.next_run),
    last_run: iso(row.last_run),
    created_at: iso(row.created_at),
    job: parsed(row.job) ?? undefined,
  })

export const taskValues = (task: Task): SQLInputValue[] => [
  task.group,
  task.jid,
  task.created_by,
  task.prompt,
  task.script,
  task.model,
  task.schedule_type,
  task.schedule_value,
  task.timezone,
  task.context_mode,
  task.status,
  ms(task.next_run),
  ms(task.last_run),
  task.last_result,
  ms(task.created_at),
  task.job ? JSON.stringify(task.job) : null,
  task.id,
]

const commandSchema = z.object({
  seq: z.number(),
  group: z.string(),
  directory: z.string(),
  file: z.string(),
  inode: z.number(),
  mtimeUs: z.number(),
  dialect: groupSchema.shape.dialect.nullable(),
  type: z.string().nullable(),
  requestId: z.string().nullable(),
  reply: replyAddressSchema.nullable(),
  outcome: outcomeSchema.nullable(),
  receivedAt: z.number(),
  tookUs: z.number(),
})

export const commandFromRow = (row: Row): CommandRow =>
  commandSchema.parse({
    ...row,
    group: row.group_folder,
    mtimeUs: row.mtime_us,
    requestId: row.request_id,
    reply: parsed(row.reply),
    outcome: parsed(row.outcome),
    receivedAt: row.received_at,
    tookUs: row.took_us,
  })

export const attachmentsSchema = z.array(
  z.object({
    id: z.string(),
    name: z.string(),
    type: z.string(),
    bytes: z.number(),
    path: z.string().optional(),
    gone: z.boolean().optional(),
  }),
)

/** undefined: nothing goes along with it, as with nearly all */
export const attachmentsIn = (row: Row): Attachment[] | undefined =>
  typeof row.attachments === 'string' ? attachmentsSchema.parse(parsed(row.attachments)) : undefined

const messageSchema = z.object({
  id: z.number(),
  group: z.string(),
  jid: z.string(),
  kind: z.enum(['text', 'reaction', 'question', 'approval']),
  text: z.string(),
  sender: z.string().nullable(),
  speech: z.object({ text: z.string(), title: z.string().optional() }).nullable(),
  messageId: z.string().nullable(),
  attachments: attachmentsSchema.optional(),
  status: z.enum(['pending', 'sent', 'failed']),
  attempts: z.number(),
  nextAttemptAt: z.number(),
  partsSent: z.number(),
  partsTotal: z.number(),
  error: z.string().nullable(),
  createdAt: z.number(),
  sentAt: z.number().nullable(),
})

export const messageFromRow = (row: Row): MessageRow =>
  messageSchema.parse({
    ...row,
    group: row.group_folder,
    speech: parsed(row.speech),
    attachments: attachmentsIn(row),
    messageId: row.message_id,
    nextAttemptAt: row.next_attempt_at,
    partsSent: row.parts_sent,
    partsTotal: row.parts_total,
    createdAt: row.created_at,
    sentAt: row.sent_at,
  })
