import { execFileSync } from 'node:child_process'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { onTestFinished, vi } from 'vitest'
import { openStore } from '../sqlite.ts'
import type { Store } from '../types.ts'

/** Ways in which a database fails. The first two are real: it runs out of room. */
export const databaseFaults = {
  statement: 'in a statement, as the database may not grow',
  commit: 'at COMMIT, as no file may be written',
  commitReport: 'at COMMIT, as far as SQLite reports, which has made it durable',
  afterCommit: 'right after COMMIT',
} as const
export type DatabaseFault = keyof typeof databaseFaults

/** A real store whose database fails when a test says so. Statements that need many new pages fail in `statement`. */
export interface FaultyStore {
  store: Store
  begin(fault: DatabaseFault): void
  end(fault: DatabaseFault): void
}

export function openFaultyStore(path: string, failed: () => void): FaultyStore {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  const active = new Set<DatabaseFault>()
  const store = openStore({
    path,
    durability: 'process',
    commits: {
      succeeded() {
        if (active.has('afterCommit')) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
      },
      failed,
    },
  })
  const database = exec.mock.contexts.find(context => context instanceof DatabaseSync)
  const commit = prepare.mock.results[prepare.mock.calls.findIndex(([text]) => text === 'COMMIT')]?.value
  exec.mockRestore()
  prepare.mockRestore()
  if (!database || !commit) throw new Error('no database was opened')
  failAfter(commit, () => active.has('commitReport'))

  const beginning: Partial<Record<DatabaseFault, () => void>> = {
    statement() {
      const { freelist_count, page_size } = Object(
        database.prepare('SELECT * FROM pragma_freelist_count, pragma_page_size').get(),
      )
      database.exec('CREATE TABLE filler (content BLOB)')
      database.prepare('INSERT INTO filler VALUES (zeroblob(?))').run(freelist_count * page_size)
      database.exec('PRAGMA max_page_count = 1')
    },
    commit() {
      onTestFinished(() => limitFiles('unlimited'))
      limitFiles(0)
    },
  }
  const ending: Partial<Record<DatabaseFault, () => void>> = {
    statement: () => database.exec('PRAGMA max_page_count = 1000000; DROP TABLE IF EXISTS filler'),
    commit: () => limitFiles('unlimited'),
  }
  return {
    store,
    begin(fault) {
      active.add(fault)
      beginning[fault]?.()
    },
    end(fault) {
      active.delete(fault)
      ending[fault]?.()
    },
  }
}

/** The statement is executed, and reported as failed. */
function failAfter(statement: StatementSync, fails: () => boolean): void {
  const run = statement.run.bind(statement)
  vi.spyOn(statement, 'run').mockImplementation(() => {
    const result = run()
    if (fails()) throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 10 })
    return result
  })
}

/** No file of this process may be written beyond so many bytes. */
const limitFiles = (bytes: number | 'unlimited') =>
  void execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
