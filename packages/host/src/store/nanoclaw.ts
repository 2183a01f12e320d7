import { z } from 'zod'
import { openSqlite } from '../base/sqlite.ts'

/** What NanoClaw 1.x keeps in store/messages.db, as far as it is taken over. Later columns may be missing. */
const groupRow = z.object({
  jid: z.string(),
  name: z.string(),
  folder: z.string(),
  trigger_pattern: z.string().nullable().default(null),
  container_config: z.string().nullable().default(null),
  requires_trigger: z.number().nullable().default(null),
  is_main: z.number().nullable().default(null),
})
const taskRow = z.object({
  id: z.string(),
  group_folder: z.string(),
  chat_jid: z.string(),
  prompt: z.string(),
  script: z.string().nullable().default(null),
  schedule_type: z.string(),
  schedule_value: z.string(),
  context_mode: z.string().nullable().default(null),
  next_run: z.string().nullable().default(null),
  last_run: z.string().nullable().default(null),
  last_result: z.string().nullable().default(null),
  status: z.string().nullable().default(null),
  created_at: z.string(),
})
const chatRow = z.object({ jid: z.string(), channel: z.string().nullable().default(null) })

export type NanoClawGroup = z.infer<typeof groupRow>
export type NanoClawTask = z.infer<typeof taskRow>

export interface NanoClawRows {
  /** undefined: this version kept them in a file */
  groups: NanoClawGroup[] | undefined
  tasks: NanoClawTask[]
  /** of chats whose channel is known */
  channels: Map<string, string>
  sessions: number
  messages: number
}

/** `path` is a copy of ours: SQLite leaves traces beside a database it reads. */
export function readNanoClaw(path: string): NanoClawRows {
  const database = openSqlite(path)
  try {
    const tables = new Set(
      database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .all()
        .map(({ name }) => name),
    )
    const all = <T>(table: string, schema: z.ZodType<T>): T[] =>
      tables.has(table)
        ? database
            .prepare(`SELECT * FROM ${table} ORDER BY rowid`)
            .all()
            .map(row => schema.parse(row))
        : []
    const count = (table: string) =>
      tables.has(table) ? Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0) : 0
    return {
      groups: tables.has('registered_groups') ? all('registered_groups', groupRow) : undefined,
      tasks: all('scheduled_tasks', taskRow),
      channels: new Map(
        all('chats', chatRow).flatMap(({ jid, channel }) => (channel === null ? [] : [[jid, channel]])),
      ),
      sessions: count('sessions'),
      messages: count('messages'),
    }
  } finally {
    database.close()
  }
}
