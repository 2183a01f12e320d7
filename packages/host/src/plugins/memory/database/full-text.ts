import { openSqlite } from '../../../base/sqlite.ts'

/** Node's SQLite can search texts (FTS5) since 22.16. */
export function hasFullTextSearch(): boolean {
  const database = openSqlite(':memory:')
  try {
    return database.prepare("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").get() !== undefined
  } finally {
    database.close()
  }
}
