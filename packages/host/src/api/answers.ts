import {
  dialectNameSchema,
  folderSchema,
  groupSchema,
  jidSchema,
  outcomeSchema,
  resultSchema,
  taskSchema,
  taskStatusSchema,
} from '@hatchway/protocol'
import { z } from 'zod'
import type { CommandEvent } from '../intake/command-event.ts'
import type { CommandRow, MessageRow } from '../store/types.ts'
import { auditEntryAnswer } from './audit-answers.ts'
import { fileAnswer } from './chat-answers.ts'
import type { Host } from './host.ts'

/** What the API takes and answers. The application makes these, the client checks them, people script against them. */
export const statusAnswer = z
  .object({
    version: z.string(),
    pid: z.int(),
    data: z.string(),
    started_at: z.iso.datetime(),
    uptime_s: z.int(),
    durability: z.enum(['full', 'process']),
    groups: z.int(),
    handled: z.int().describe('commands since the start'),
    refused: z.int().describe('of these'),
    busy: z.boolean(),
    agents_enabled: z.boolean(),
    sandbox: z
      .object({
        name: z.string().describe('`none`: there is none that can be used'),
        isolated: z.boolean(),
        warning: z.string().nullable().describe('what has to stay on screen'),
      })
      .nullable()
      .describe('null: none has been chosen yet'),
    model_warning: z.string().nullable().describe('what keeps agents from asking their model'),
    problem: z.string().nullable().describe('why nothing can be stored at the moment, such as a full disk'),
  })
  .meta({ id: 'Status' })

export const groupAnswer = groupSchema
  .extend({
    mode: z.enum(['events', 'polling']).optional().describe('how its files are noticed, while a daemon runs'),
    sandbox: z.string().describe('what its agent runs in'),
    driver: z.string().describe('who answers'),
    repo: z.string().nullable().describe('the repository that its agent works on'),
    mounts: z
      .array(z.object({ from: z.string(), to: z.string(), writable: z.boolean() }))
      .describe('further directories that its agent sees'),
    limits: z.object({
      commands_per_minute: z.int(),
      files_waiting: z.int(),
      open_tasks: z.int(),
      open_requests: z.int(),
      open_todos: z.int(),
      file_bytes: z.int(),
      memory_mb: z.int(),
      processes: z.int(),
      cpus: z.int(),
      run_ms: z.int(),
    }),
    taint: z
      .object({ corrupted: z.boolean(), secret: z.boolean() })
      .describe('what the conversation that goes on has read'),
    session: z.object({ state: z.string(), run_id: z.string() }).nullable(),
  })
  .meta({ id: 'Group' })

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

const message = z.object({
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
  attachments: z.array(fileAnswer).optional().describe('files that go along'),
})
export const messageAnswer = message.meta({ id: 'Message' })

const refused = z.object({
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
export const errorAnswer = refused.meta({ id: 'Refused' })

export const errorContentAnswer = refused.extend({
  content: z
    .object({ base64: z.string(), truncated: z.boolean() })
    .nullable()
    .optional()
    .describe('only when asked for; null where there is no file to show'),
})

const commandShape = z.object({
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
export const commandAnswer = commandShape.meta({ id: 'Command' })

export const wholeCommandAnswer = commandShape.extend({
  content: z
    .object({ text: z.string(), truncated: z.boolean() })
    .nullable()
    .describe('the file as it was received, while that is known: of the latest ones, and of those refused'),
  sender: z.object({
    group: z.string(),
    dialect: dialectNameSchema.nullable(),
    main: z.boolean().describe('whether it is a main group now'),
  }),
  steps: z
    .array(
      z.object({
        name: z.enum(['written', 'claimed', 'decided', 'answered']),
        at: z.iso.datetime(),
        note: z.string().optional(),
      }),
    )
    .describe('written: by its writer’s clock'),
  audit: z.array(auditEntryAnswer).describe('what the guard noted about the request'),
  error_id: z.string().nullable().describe('of the refused file'),
})

export const taskAnswer = taskSchema.meta({ id: 'Task' })
export const changedTaskAnswer = z.object({
  task_id: z.string(),
  status: taskStatusSchema,
  next_run: z.iso.datetime().nullable(),
})

export const eventAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('command'), command: commandAnswer }),
  z.object({ kind: z.literal('heartbeat'), at: z.iso.datetime() }),
  z.object({ kind: z.literal('dropped'), count: z.int() }),
])

export const groupsAnswer = z.array(groupAnswer)
export const tasksAnswer = z.array(taskAnswer)
export const messagesAnswer = z.array(messageAnswer)
export const errorsAnswer = z.array(errorAnswer)
export const commandsAnswer = z.array(commandAnswer)
export const wipedAnswer = z.object({
  folder: z.string(),
  removed: z.number().describe('how many directories there were'),
  still_tainted: z.array(z.string()).describe('text that lies elsewhere, and taints whoever is given it'),
})
export { resultSchema as resultAnswer }

export type StatusAnswer = z.infer<typeof statusAnswer>
export type GroupAnswer = z.infer<typeof groupAnswer>
export type MessageAnswer = z.infer<typeof messageAnswer>
export type ErrorAnswer = z.infer<typeof errorAnswer>
export type ErrorContentAnswer = z.infer<typeof errorContentAnswer>
export type CommandAnswer = z.infer<typeof commandAnswer>
export type WholeCommandAnswer = z.infer<typeof wholeCommandAnswer>
export type EventAnswer = z.infer<typeof eventAnswer>

const iso = (ms: number) => new Date(ms).toISOString()

export const statusOf = (host: Host): StatusAnswer => {
  const { startedAt, ...status } = host.status()
  const choice = host.agents()?.choice
  return {
    ...status,
    started_at: startedAt,
    uptime_s: Math.max(0, Math.floor((Date.now() - Date.parse(startedAt)) / 1000)),
    agents_enabled: host.config.agents.enabled === 'yes',
    sandbox: choice
      ? {
          name: choice.sandbox?.name ?? 'none',
          isolated: choice.sandbox?.isolated ?? false,
          warning: choice.warning ?? (choice.sandbox ? null : choice.reason),
        }
      : null,
    model_warning: host.agents()?.modelWarning() ?? null,
    problem: host.retries.problem() ?? null,
  }
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
  ...(row.attachments && { attachments: [...row.attachments] }),
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
