import type { Connection } from './connection.ts'

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
