import { z } from 'zod'
import type { Connection } from './connection.ts'
import type { Row } from './rows.ts'

/** What every card has: it stands for a request, a message tells people of it, and it is open until it is closed. */
export const cardSchema = z.object({
  seq: z.number(),
  group: z.string(),
  jid: z.string(),
  messageId: z.number(),
  createdAt: z.number(),
  expiresAt: z.number(),
  closedAt: z.number().nullable(),
})

export const cardFromRow = (row: Row) => ({
  ...row,
  group: row.group_folder,
  messageId: row.message_id,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  closedAt: row.closed_at,
})

/** Forgets those whose message is forgotten. */
export const pruneCards = ({ sql }: Pick<Connection, 'sql'>, table: 'approvals' | 'questions'): void =>
  void sql(
    `DELETE FROM ${table} WHERE status <> 'open'
     AND message_id < (SELECT coalesce(min(id), 0) FROM messages)`,
  ).run()
