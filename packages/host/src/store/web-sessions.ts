import { z } from 'zod'
import type { Connection } from './connection.ts'
import { parsed, type Row } from './rows.ts'

const rowSchema = z.object({
  /** to name it by; not what the cookie says */
  id: z.string(),
  /** of what the cookie says */
  idHash: z.string(),
  /** the printed link, a password, or an OpenID Connect provider */
  way: z.enum(['link', 'password', 'oidc']),
  name: z.string(),
  /** of what let them in; once that is another, this does not count any more */
  credential: z.string(),
  claims: z.array(z.string()),
  address: z.string(),
  browser: z.string(),
  createdAt: z.number(),
  seenAt: z.number(),
  expiresAt: z.number(),
})
/** A browser that is let in. What it may do is looked up at every use, not kept here. */
export type WebSessionRow = z.infer<typeof rowSchema>

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
        sql('INSERT INTO web_sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
          session.id,
          session.idHash,
          session.way,
          session.name,
          session.credential,
          JSON.stringify(session.claims),
          session.address,
          session.browser,
          session.createdAt,
          session.seenAt,
          session.expiresAt,
        )
      }),
    byHash(idHash) {
      const row = sql('SELECT * FROM web_sessions WHERE id_hash = ?').get(idHash)
      return row && fromRow(row)
    },
    list: now =>
      sql('SELECT * FROM web_sessions WHERE expires_at > ? ORDER BY seen_at DESC, id').all(now).map(fromRow),
    seen: (id, at, expiresAt) =>
      void sql('UPDATE web_sessions SET seen_at = ?, expires_at = ? WHERE id = ?').run(at, expiresAt, id),
    remove: id => sql('DELETE FROM web_sessions WHERE id = ?').run(id).changes > 0,
  }
}

const fromRow = (row: Row): WebSessionRow =>
  rowSchema.parse({
    ...row,
    idHash: row.id_hash,
    claims: parsed(row.claims),
    createdAt: row.created_at,
    seenAt: row.seen_at,
    expiresAt: row.expires_at,
  })
