import { openSqlite } from './sqlite.ts'

/**
 * A lock that the kernel gives back the moment its process ends, however it ends. Node has no `flock`; SQLite locks
 * its files properly on every system, so an empty database is held in a transaction that never finishes.
 *
 * The file must not be opened by other means in this process: closing any handle on it would drop the lock.
 */
export interface FileLock {
  release(): void
}

const busy = 5

/** undefined: somebody else has it, in this process or another. */
export function tryLockFile(path: string): FileLock | undefined {
  const database = openSqlite(path)
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === busy) return undefined
    throw error
  }
  return { release: () => database.close() }
}
