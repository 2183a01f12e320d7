import type { SQLOutputValue } from 'node:sqlite'
import { z } from 'zod'
import {
  type IncomingRow,
  type OccurrenceRow,
  type RunRow,
  runStatuses,
  type StepRow,
  type Usage,
} from './agent-types.ts'
import { attachmentsIn, attachmentsSchema } from './rows.ts'

/** Between rows and objects, as in rows.ts. */
type Row = Record<string, SQLOutputValue>

const incomingSchema = z.object({
  id: z.number(),
  group: z.string(),
  jid: z.string(),
  channel: z.string(),
  externalId: z.string().nullable(),
  sender: z.string(),
  senderName: z.string(),
  text: z.string(),
  attachments: attachmentsSchema.optional(),
  status: z.enum(['waiting', 'given', 'used', 'context']),
  runId: z.string().nullable(),
  createdAt: z.number(),
})

export const incomingFromRow = (row: Row): IncomingRow =>
  incomingSchema.parse({
    ...row,
    group: row.group_folder,
    externalId: row.external_id,
    senderName: row.sender_name,
    attachments: attachmentsIn(row),
    runId: row.run_id,
    createdAt: row.created_at,
  })

const runSchema = z.object({
  id: z.string(),
  group: z.string(),
  kind: z.enum(['chat', 'task']),
  taskId: z.string().nullable(),
  occurrenceId: z.string().nullable(),
  sandbox: z.string(),
  image: z.string().nullable(),
  driver: z.string(),
  sessionId: z.string().nullable(),
  status: z.enum(runStatuses),
  startedAt: z.number(),
  endedAt: z.number().nullable(),
  result: z.string().nullable(),
  error: z.string().nullable(),
})

export const runFromRow = (row: Row): RunRow =>
  runSchema.parse({
    ...row,
    group: row.group_folder,
    taskId: row.task_id,
    occurrenceId: row.occurrence_id,
    sessionId: row.session_id,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  })

const stepSchema = z.object({
  runId: z.string(),
  at: z.number(),
  kind: z.string(),
  name: z.string().nullable(),
  text: z.string(),
})

export const stepFromRow = (row: Row, runId: string): StepRow => stepSchema.parse({ ...row, runId })

const occurrenceSchema = z.object({
  id: z.string(),
  taskId: z.string(),
  group: z.string(),
  dueAt: z.number(),
  manual: z.boolean(),
  status: z.enum(['claimed', 'running', 'done', 'failed', 'skipped']),
  runId: z.string().nullable(),
  claimedAt: z.number(),
  startedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
  result: z.string().nullable(),
  error: z.string().nullable(),
})

export const occurrenceFromRow = (row: Row): OccurrenceRow =>
  occurrenceSchema.parse({
    ...row,
    taskId: row.task_id,
    group: row.group_folder,
    dueAt: row.due_at,
    manual: row.manual === 1,
    runId: row.run_id,
    claimedAt: row.claimed_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  })

const usageSchema = z.object({
  group: z.string(),
  day: z.string(),
  model: z.string(),
  requests: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
})

export const usageFromRow = (row: Row): Usage =>
  usageSchema.parse({
    ...row,
    group: row.group_folder,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
  })
