import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

const migrationsDirectory = join(import.meta.dirname, 'migrations')

export interface Migration {
  version: number
  sql: string
}

/** Files named `NNN-what.sql`, applied in order. A released file never changes; a new one is added. */
export function readMigrations(directory = migrationsDirectory): Migration[] {
  return readdirSync(directory)
    .filter(name => /^\d{3}-.+\.sql$/.test(name))
    .sort()
    .map(name => ({ version: Number(name.slice(0, 3)), sql: readFileSync(join(directory, name), 'utf8') }))
}

/** Read when the program is loaded, like the rest of it: the user it runs as later may not be allowed to. */
const ownMigrations = readMigrations()
export const newestVersion = ownMigrations.at(-1)?.version ?? 0

export class StoreTooNew extends Error {
  override name = 'StoreTooNew'
}

/** Brings a database of any earlier version up to date, each step in a transaction of its own. */
export function migrate(database: DatabaseSync, migrations = ownMigrations): void {
  const current = Number(database.prepare('PRAGMA user_version').get()?.user_version ?? 0)
  const newest = migrations.at(-1)?.version ?? 0
  if (current > newest) {
    throw new StoreTooNew(
      `The data directory was written by a newer Hatchway (store version ${current}, this one knows ${newest}). Upgrade Hatchway, or restore a backup.`,
    )
  }
  for (const { version, sql } of migrations) {
    if (version <= current) continue
    database.exec('BEGIN IMMEDIATE')
    try {
      database.exec(sql)
      database.exec(`PRAGMA user_version = ${version}`)
      database.exec('COMMIT')
    } catch (error) {
      database.exec('ROLLBACK')
      throw error
    }
  }
}
