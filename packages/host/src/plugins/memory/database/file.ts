import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { openSqlite, rollBack } from '../../../base/sqlite.ts'
import { type Connection, preparedOnce } from '../../../store/connection.ts'
import { migrate, readMigrations } from '../../../store/migrate.ts'
import type { MemoryOwner, MemoryThreadOptions } from './types.ts'

/** The file of one group's memories, open. */
export interface MemoryFile extends Pick<Connection, 'sql' | 'atomically'> {
  close(): void
}

/** Damaged: a person has to see to it. The file stays as it is, for what can be saved of it. */
export class MemoryFileDamaged extends Error {
  override name = 'MemoryFileDamaged'
}

const migrations = readMigrations(join(import.meta.dirname, 'migrations'))
const safeName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/

/** Folders are compared without case, so their files are named without. */
const nameOf = (folder: string): string => {
  if (!safeName.test(folder)) throw new Error('This is not the folder of a group.')
  return folder.toLowerCase()
}

type Place = Pick<MemoryThreadOptions, 'directory' | 'durability'>

/**
 * Opens or begins the file. One that an earlier group of the same folder has left is moved aside: its memories are not
 * for this one to see, and not ours to throw away.
 */
export function openMemoryFile(place: Place, owner: MemoryOwner): MemoryFile {
  const name = nameOf(owner.folder)
  return explained(name, () => {
    mkdirSync(place.directory, { recursive: true, mode: 0o700 })
    const path = join(place.directory, `${name}.db`)
    const found = open(path, place.durability, owner)
    if (found) return opened(name, found)
    moveAside(place.directory, name)
    const begun = open(path, place.durability, owner)
    if (!begun) throw new Error('The file of the memories was not moved aside.')
    return opened(name, begun)
  })
}

/** undefined: it belongs to another group. */
function open(path: string, durability: Place['durability'], owner: MemoryOwner): DatabaseSync | undefined {
  const database = openSqlite(path, { waitMs: 5000 })
  try {
    // Not WAL: its index is a file in memory (mmap), and where a full disk has no block for a page of it the kernel
    // ends the whole process with SIGBUS. A file of ours alone could do without, but backups read this one beside us.
    database.exec(`
      PRAGMA journal_mode = PERSIST;
      PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'};
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -8000;
    `)
    migrate(database, migrations)
    database.prepare("INSERT INTO about VALUES ('jid', ?) ON CONFLICT (name) DO NOTHING").run(owner.jid)
    if (database.prepare("SELECT value FROM about WHERE name = 'jid'").get()?.value === owner.jid)
      return database
  } catch (error) {
    database.close()
    throw error
  }
  database.close()
  return undefined
}

function opened(name: string, database: DatabaseSync): MemoryFile {
  return {
    sql: preparedOnce(database),
    atomically: work =>
      explained(name, () => {
        database.exec('BEGIN IMMEDIATE')
        try {
          const result = work()
          database.exec('COMMIT')
          return result
        } catch (error) {
          rollBack(() => database.exec('ROLLBACK'))
          throw error
        }
      }),
    close: () => database.close(),
  }
}

/** A dot is in no folder's name, so that what lies aside is never taken for a group's. */
function moveAside(directory: string, name: string): void {
  const from = join(directory, `${name}.db`)
  let number = 1
  while (existsSync(join(directory, `${name}.${number}.db`))) number++
  const to = join(directory, `${name}.${number}.db`)
  // The log first: a file without its log could lose its last changes, a log without its file says nothing.
  for (const log of ['-journal', '-wal', '-shm']) if (existsSync(from + log)) renameSync(from + log, to + log)
  renameSync(from, to)
}

const corrupt = 11
const notADatabase = 26

/** In words for the agent, who has no use for the host's paths. */
function explained<T>(name: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    const errcode = 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined
    if (errcode !== undefined && (errcode % 256 === corrupt || errcode === notADatabase))
      throw new MemoryFileDamaged(
        `The memories of this group cannot be read: their file ${name}.db is damaged (${error.message}). It is left as it is. The operator can put a backup in its place, or move it away to begin without memories.`,
        { cause: error },
      )
    const reason = errcode === undefined ? error.code : error.message
    throw new Error(`The memories of this group could not be reached: ${reason}.`, { cause: error })
  }
}
