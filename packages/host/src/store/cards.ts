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

const content = { approvals: 'action', questions: 'questions' } as const

/**
 * Forgets those whose message is forgotten. Large messages go before their turn where a group has too many of them, and
 * then so do the cards. How many approvals were taken back lately is still to be known.
 */
export function pruneCards({ sql }: Pick<Connection, 'sql'>, table: 'approvals' | 'questions'): void {
  sql(
    `DELETE FROM ${table} WHERE status <> 'open'
     AND message_id < (SELECT coalesce(min(id), 0) FROM messages)`,
  ).run()
  const isOld = table === 'approvals' ? 'AND created_at < (unixepoch() - 3600) * 1000' : ''
  sql(
    `DELETE FROM ${table} WHERE status <> 'open' AND octet_length(${content[table]}) > 1024 ${isOld}
     AND NOT EXISTS (SELECT 1 FROM messages WHERE id = ${table}.message_id)`,
  ).run()
}
