import { join } from 'node:path'
import type { DialectName } from '@hatchway/protocol'
import { openSqlite, sqlite } from '../base/sqlite.ts'
import { createAuditTable } from './audit.ts'
import { verifyAudit } from './audit-verify.ts'
import { preparedOnce } from './connection.ts'
import { groupTable } from './groups.ts'
import { newestVersion } from './migrate.ts'

/** What a look into a database finds, without changing it. Any earlier version will do. */
export interface StoreFacts {
  version: number
  /** the newest version that is known here */
  newest: number
  /** what is damaged, in SQLite's words; empty: nothing */
  damage: string[]
  installation: string | null
  /** `uid`: of its agents, where the host is root; null: a database of an earlier version */
  groups: { folder: string; jid: string; main: boolean; dialect: DialectName; uid: number | null }[]
  messages: { pending: number; failed: number }
  /** the latest instant that is written down, in milliseconds; later than now: the clock was set back */
  latest: number | null
  audit: { ok: boolean; message: string }
}

const mostDamage = 5
const busy = 5

/** `path` is nobody else's at the moment: a copy, or a database whose data directory we hold. */
export async function inspectStore(
  path: string,
  at: 'everything' | 'damage' = 'everything',
): Promise<StoreFacts> {
  const database = openSqlite(path, { waitMs: 1000 })
  try {
    const sql = preparedOnce(database)
    const number = (text: string) => Number(Object.values(sql(text).get() ?? {})[0] ?? 0)
    const version = number('PRAGMA user_version')
    const facts: StoreFacts = {
      version,
      newest: newestVersion,
      damage: [],
      installation: null,
      groups: [],
      messages: { pending: 0, failed: 0 },
      latest: null,
      audit: { ok: true, message: 'There is none yet.' },
    }
    facts.damage = sql(`PRAGMA integrity_check(${mostDamage})`)
      .all()
      .map(row => String(row.integrity_check))
      .filter(line => line !== 'ok')
    const isForeign = version === 0 || version > newestVersion
    if (facts.damage.length > 0 || isForeign || at === 'damage') return facts

    const installation = sql("SELECT value FROM meta WHERE key = 'installation'").get()?.value
    const audit = await auditOf(sql, version)
    const hasUsers = number("SELECT count(*) FROM sqlite_schema WHERE name = 'agent_users'") > 0
    const users = hasUsers ? sql('SELECT folder, uid FROM agent_users').all() : []
    const uids = new Map(users.map(({ folder, uid }) => [String(folder).toLowerCase(), Number(uid)]))
    return {
      ...facts,
      installation: typeof installation === 'string' ? installation : null,
      groups: sql('SELECT * FROM groups ORDER BY folder')
        .all()
        .map(groupTable.from)
        .map(({ folder, jid, main, dialect }) => {
          return { folder, jid, main, dialect, uid: uids.get(folder.toLowerCase()) ?? null }
        }),
      messages: {
        pending: number("SELECT count(*) FROM messages WHERE status = 'pending'"),
        failed: number("SELECT count(*) FROM messages WHERE status = 'failed'"),
      },
      latest:
        Math.max(
          number('SELECT received_at FROM commands ORDER BY seq DESC LIMIT 1'),
          number('SELECT created_at FROM messages ORDER BY id DESC LIMIT 1'),
        ) || null,
      audit,
    }
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === busy) throw error
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR')) throw error
    return unreadable(error.message)
  } finally {
    database.close()
  }
}

const unreadable = (damage: string): StoreFacts => ({
  version: 0,
  newest: newestVersion,
  damage: [damage],
  installation: null,
  groups: [],
  messages: { pending: 0, failed: 0 },
  latest: null,
  audit: { ok: false, message: 'It cannot be read.' },
})

/** The version that brought the audit log. */
const audited = 4

async function auditOf(sql: ReturnType<typeof preparedOnce>, version: number): Promise<StoreFacts['audit']> {
  if (version < audited) return { ok: true, message: 'There is none yet.' }
  const { store } = createAuditTable({ sql, atomically: work => work(), onRollback: () => {} })
  const report = await verifyAudit(store)
  return report.ok
    ? { ok: true, message: `${report.entries} entries, and every one follows from the one before.` }
    : { ok: false, message: report.message }
}

/** Makes one file of a copy and its log. */
export function settleCopy(path: string): void {
  const database = openSqlite(path)
  try {
    database.exec('PRAGMA journal_mode = DELETE')
  } finally {
    database.close()
  }
}

/** Whoever is signed in here is not signed in wherever the copy is restored, and nothing of it stays in the file. */
export function signOut(path: string): void {
  const database = openSqlite(path)
  try {
    database.exec('PRAGMA secure_delete = ON; DELETE FROM web_sessions')
  } finally {
    database.close()
  }
}

/** The files behind the commands after this one, as `group/directory/name/inode/mtime`. */
export function handledAfter(path: string, seq: number): string[] {
  const database = openSqlite(path, { readOnly: true })
  try {
    return database
      .prepare(
        "SELECT concat_ws('/', group_folder, directory, file, inode, mtime_us) AS file FROM commands WHERE seq > ?",
      )
      .all(seq)
      .map(row => String(row.file))
  } finally {
    database.close()
  }
}

/**
 * A database that others have open: SQLite's own way, in one step, which is one moment. Node before 22.16 does not have it;
 * there the copy is written anew, which fails where the database is damaged.
 */
export async function copyWhole(directory: string, names: readonly string[], to: string): Promise<void> {
  for (const name of names) {
    const database = openSqlite(join(directory, name), { waitMs: 5000 })
    try {
      if ('backup' in sqlite) await sqlite.backup(database, join(to, name), { rate: 2 ** 31 - 1 })
      else database.prepare('VACUUM INTO ?').run(join(to, name))
    } finally {
      database.close()
    }
    settleCopy(join(to, name))
  }
}
