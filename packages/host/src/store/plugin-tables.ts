import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { reasonOf } from '@hatchway/spool'
import { sqlite } from '../base/sqlite.ts'

const { constants } = sqlite

/** A prepared statement, as node:sqlite has it. */
export type Statement = StatementSync

/** A step of a plugin's tables. A released one never changes; a new one is added. */
export interface PluginMigration {
  version: number
  sql: string
}

/** Whose tables they are. */
export interface TableOwner {
  name: string
  migrations?: readonly PluginMigration[] | undefined
  /** tables that do not begin with the plugin's name */
  tables?: readonly string[] | undefined
  /** part of this release: its statements need not be watched where Node cannot */
  isBuiltIn?: boolean
}

/** The part of the database that belongs to one plugin. */
export interface PluginTables {
  sql(text: string): StatementSync
}

/** What a statement on a table may be; anything else (PRAGMA, ATTACH, CREATE …) is refused. */
const onTables = new Set<number>([
  constants.SQLITE_READ,
  constants.SQLITE_INSERT,
  constants.SQLITE_UPDATE,
  constants.SQLITE_DELETE,
])
const always = new Set<number>([
  constants.SQLITE_SELECT,
  constants.SQLITE_FUNCTION,
  constants.SQLITE_RECURSIVE,
])

/**
 * Brings the plugin's tables up to date and gives it statements that reach nothing else. SQLite asks when a statement is
 * prepared, so running it costs nothing. This keeps plugins from accidents; a plugin is trusted code all the same.
 */
export function openPluginTables(database: DatabaseSync, owner: TableOwner): PluginTables {
  const prefix = `${owner.name.replaceAll('-', '_')}_`
  const others = new Set(owner.tables ?? [])
  const isOwn = (table: string | null) => table !== null && (table.startsWith(prefix) || others.has(table))
  const canWatch = 'setAuthorizer' in database
  const isRefused = !canWatch && !owner.isBuiltIn
  if (isRefused && owner.migrations?.length) throw cannotWatch(owner.name)
  migratePlugin(database, owner, isOwn)
  const prepared = new Map<string, StatementSync>()
  const authorise = (action: number, first: string | null) =>
    always.has(action) || (onTables.has(action) && isOwn(first)) ? constants.SQLITE_OK : constants.SQLITE_DENY
  const prepare = (text: string): StatementSync => {
    const statement = database.prepare(text)
    prepared.set(text, statement)
    return statement
  }
  return {
    sql(text) {
      const known = prepared.get(text)
      if (known) return known
      if (isRefused) throw cannotWatch(owner.name)
      if (!canWatch) return prepare(text)
      database.setAuthorizer(authorise)
      try {
        return prepare(text)
      } catch (error) {
        const reason = reasonOf(error)
        throw new Error(
          `The plugin ${owner.name} may use only tables that begin with ${prefix} (${reason}).`,
          {
            cause: error,
          },
        )
      } finally {
        database.setAuthorizer(null)
      }
    },
  }
}

const cannotWatch = (plugin: string) =>
  new Error(
    `The plugin ${plugin} has tables of its own, and this is Node ${process.versions.node}. Plugins with tables need Node 24.10 or newer, which can keep them to their own.`,
  )

function migratePlugin(
  database: DatabaseSync,
  { name, migrations = [] }: TableOwner,
  isOwn: (table: string) => boolean,
): void {
  const key = `plugin:${name}`
  const row = database.prepare('SELECT value FROM meta WHERE key = ?').get(key)
  const current = Number(row?.value ?? 0)
  const newest = migrations.at(-1)?.version ?? 0
  if (current > newest) {
    throw new Error(
      `The tables of the plugin ${name} were written by a newer version of it (${current}; this one knows ${newest}). Upgrade the plugin.`,
    )
  }
  const tables = () =>
    new Set(
      database
        .prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        .all()
        .map(found => String(found.name)),
    )
  for (const { version, sql } of migrations) {
    if (version <= current) continue
    const before = tables()
    database.exec('BEGIN IMMEDIATE')
    try {
      database.exec(sql)
      const foreign = [...tables()].find(table => !before.has(table) && !isOwn(table))
      if (foreign !== undefined) {
        throw new Error(`The plugin ${name} makes a table ${foreign}, which is not its own to make.`)
      }
      database
        .prepare('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
        .run(key, String(version))
      database.exec('COMMIT')
    } catch (error) {
      database.exec('ROLLBACK')
      throw error
    }
  }
}
