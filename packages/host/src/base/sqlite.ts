import type { DatabaseSync } from 'node:sqlite'

/**
 * node:sqlite, as far as Node 22.13 has it. That Node warns that it is an experiment when it is loaded, which nobody who
 * runs a command can do anything about. An import would load it before any line of ours, so it is asked for here.
 */
export const sqlite = withoutWarning(() => process.getBuiltinModule('node:sqlite'))

function withoutWarning<T>(load: () => T): T {
  const { emitWarning } = process
  process.emitWarning = (warning: string | Error, ...about: unknown[]) => {
    if (about[0] === 'ExperimentalWarning' && String(warning).startsWith('SQLite is an experimental')) return
    Reflect.apply(emitWarning, process, [warning, ...about])
  }
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}

/** `waitMs`: how long another connection may have it locked. The option `timeout` would do nothing before Node 22.16. */
export function openSqlite(
  path: string,
  { waitMs = 0, readOnly = false }: { waitMs?: number; readOnly?: boolean } = {},
): DatabaseSync {
  const database = new sqlite.DatabaseSync(path, { readOnly })
  database.exec(`PRAGMA busy_timeout = ${waitMs}`)
  return database
}

const generic = 1

/** After an error SQLite may have rolled back on its own. What matters is that no transaction is left open. */
export function rollBack(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    const isOver =
      error instanceof Error &&
      'errcode' in error &&
      error.errcode === generic &&
      error.message.includes('no transaction is active')
    if (!isOver) throw error
  }
}
