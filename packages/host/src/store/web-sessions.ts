import type { Connection } from './connection.ts'
import { type WebSessionRow, webSessionSchema } from './entities/web-session.ts'
import { tableOf } from './table.ts'

const sessionTable = tableOf('web_sessions', webSessionSchema)

export interface WebSessionStore {
  /** forgets what has expired, and the oldest where there are too many */
  add(session: WebSessionRow): void
  byHash(idHash: string): WebSessionRow | undefined
  /** whichever was seen last first */
  list(now: number): readonly WebSessionRow[]
  seen(id: string, at: number, expiresAt: number): void
  /** whether there was one */
  remove(id: string): boolean
}

const kept = 1000

export function createWebSessionTable({ sql, atomically }: Connection): WebSessionStore {
  return {
    add: session =>
      atomically(() => {
        sql('DELETE FROM web_sessions WHERE expires_at <= ?').run(session.createdAt)
        sql(
          'DELETE FROM web_sessions WHERE id IN (SELECT id FROM web_sessions ORDER BY seen_at DESC LIMIT -1 OFFSET ?)',
        ).run(kept - 1)
        sql(sessionTable.insert).run(...sessionTable.values(session))
      }),
    byHash: hash => sessionTable.maybe(sql('SELECT * FROM web_sessions WHERE id_hash = ?').get(hash)),
    list: now =>
      sql('SELECT * FROM web_sessions WHERE expires_at > ? ORDER BY seen_at DESC, id')
        .all(now)
        .map(sessionTable.from),
    seen: (id, at, expiresAt) =>
      void sql('UPDATE web_sessions SET seen_at = ?, expires_at = ? WHERE id = ?').run(at, expiresAt, id),
    remove: id => sql('DELETE FROM web_sessions WHERE id = ?').run(id).changes > 0,
  }
}
