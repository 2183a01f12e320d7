import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Everything in the store that is not the hostile group's, row by row, read from outside: what is there before the
 * attack has to be there after it, as it was, and nothing beside it.
 */
export type Assets = Map<string, readonly string[]>

/** The journal and the outbox of the group that asks all along grow, and are looked at on their own. */
const growing = new Set([
  'commands',
  'messages',
  'audit',
  'runs',
  'incoming',
  'steps',
  'occurrences',
  'meta',
  'sessions',
  'usage',
])

function readOnly<T>(path: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 10_000 })
  try {
    return work(database)
  } finally {
    database.close()
  }
}

const rowsOf = (database: DatabaseSync, sql: string, ...values: string[]): string[] =>
  database
    .prepare(sql)
    .all(...values)
    .map(row => JSON.stringify(row))

const tablesOf = (database: DatabaseSync): { name: string; columns: string[] }[] =>
  database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name }) => ({
      name: String(name),
      columns: database
        .prepare(`SELECT name FROM pragma_table_info('${name}')`)
        .all()
        .map(column => String(column.name)),
    }))

export function assetsBeside(group: string, state: string): Assets {
  const found: Assets = new Map()
  readOnly(join(state, 'hatchway.db'), database => {
    for (const { name, columns } of tablesOf(database)) {
      if (growing.has(name) || name.startsWith('audit')) continue
      // When it was last heard from is told by its messages.
      const what = columns.filter(column => column !== 'last_activity').join()
      found.set(
        name,
        columns.includes('group_folder')
          ? rowsOf(database, `SELECT ${what} FROM ${name} WHERE group_folder IS NOT ?`, group)
          : rowsOf(
              database,
              `SELECT ${what} FROM ${name} ${name === 'groups' ? `WHERE folder <> '${group}'` : ''}`,
            ),
      )
    }
  })
  for (const file of readdirSync(join(state, 'memory'))) {
    if (!file.endsWith('.db') || file.startsWith(`${group}.`)) continue
    readOnly(join(state, 'memory', file), database =>
      found.set(
        `memories in ${file}`,
        tablesOf(database)
          .filter(({ name }) => !/_(data|idx|content|docsize|config)$/.test(name))
          .flatMap(({ name }) => rowsOf(database, `SELECT * FROM ${name}`)),
      ),
    )
  }
  return found
}

/** What the marks of its runs begin with. */
export const installationIn = (state: string): string =>
  readOnly(join(state, 'hatchway.db'), database =>
    String(database.prepare("SELECT value FROM meta WHERE key = 'installation'").get()?.value),
  )

export function differences(before: Assets, after: Assets): string[] {
  const found: string[] = []
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const [was = [], is = []] = [before.get(name), after.get(name)]
    for (const row of was) if (!is.includes(row)) found.push(`${name}: no longer ${row.slice(0, 300)}`)
    for (const row of is) if (!was.includes(row)) found.push(`${name}: new ${row.slice(0, 300)}`)
  }
  return found
}

/** What the hostile group has that it must not have, and what others have said that they did not say. */
export function intrusions(
  state: string,
  own: { folder: string; jid: string },
  saidByOthers: RegExp,
): { problems: string[]; counts: Record<string, number> } {
  return readOnly(join(state, 'hatchway.db'), database => {
    const problems: string[] = []
    const counts: Record<string, number> = {}
    const none = (what: string, sql: string, ...values: string[]) => {
      for (const row of rowsOf(database, sql, ...values).slice(0, 5))
        problems.push(`${what}: ${row.slice(0, 300)}`)
    }
    const count = (what: string, sql: string) => {
      counts[what] = Number(database.prepare(sql).get()?.n)
    }
    const { folder, jid } = own
    none(
      'it has a task in another chat',
      'SELECT * FROM tasks WHERE group_folder = ? AND jid <> ?',
      folder,
      jid,
    )
    none(
      'it made another’s task',
      'SELECT * FROM tasks WHERE created_by = ? AND group_folder <> ?',
      folder,
      folder,
    )
    none(
      'it has a command on the host',
      'SELECT * FROM tasks WHERE group_folder = ? AND job IS NOT NULL',
      folder,
    )
    none(
      'it said something elsewhere',
      'SELECT * FROM messages WHERE group_folder = ? AND jid <> ?',
      folder,
      jid,
    )
    none(
      'it asked people elsewhere',
      'SELECT * FROM questions WHERE group_folder = ? AND jid <> ?',
      folder,
      jid,
    )
    none(
      'it has an approval that nobody gave',
      `SELECT * FROM approvals WHERE group_folder = ? AND status IN ('allowed', 'denied')`,
      folder,
    )
    none(
      'it has an approval elsewhere',
      'SELECT * FROM approvals WHERE group_folder = ? AND jid <> ?',
      folder,
      jid,
    )
    none('it made a rule', 'SELECT * FROM approval_rules WHERE group_folder = ?', folder)
    none('it has a file of another', 'SELECT * FROM files WHERE group_folder = ? AND jid <> ?', folder, jid)
    none(
      'it was told something in another chat',
      'SELECT * FROM incoming WHERE group_folder = ? AND jid <> ?',
      folder,
      jid,
    )
    none(
      'what it ran belongs to another',
      `SELECT * FROM occurrences WHERE group_folder <> ? AND task_id IN (SELECT id FROM tasks WHERE group_folder = ?)`,
      folder,
      folder,
    )
    none(
      'the guard says that a person allowed it',
      `SELECT * FROM audit WHERE group_folder = ? AND (decided_by LIKE 'person:%' OR decided_by = 'operator')`,
      folder,
    )
    for (const row of database
      .prepare('SELECT group_folder, text FROM messages WHERE group_folder <> ?')
      .all(folder))
      if (!saidByOthers.test(String(row.text)))
        problems.push(`${row.group_folder} said ${JSON.stringify(row.text).slice(0, 200)}`)
    // Each request once, whatever was posted how often.
    none(
      'it said twice what it asked for once',
      `SELECT text FROM messages WHERE group_folder = ? AND (text LIKE 'once %' OR text LIKE 'answer me %') GROUP BY text HAVING count(*) > 1`,
      folder,
    )
    count('tasks', `SELECT count(*) AS n FROM tasks WHERE group_folder = '${folder}'`)
    count('messages', `SELECT count(*) AS n FROM messages WHERE group_folder = '${folder}'`)
    count('approvals', `SELECT count(*) AS n FROM approvals WHERE group_folder = '${folder}'`)
    count('runs', `SELECT count(*) AS n FROM runs WHERE group_folder = '${folder}'`)
    count('commands', `SELECT count(*) AS n FROM commands WHERE group_folder = '${folder}'`)
    return { problems, counts }
  })
}
