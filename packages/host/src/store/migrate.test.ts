import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { migrate, readMigrations, StoreTooNew } from './migrate.ts'
import { openStore } from './sqlite.ts'

const first = readMigrations().slice(0, 1)

function database(path = ':memory:'): DatabaseSync {
  const opened = new DatabaseSync(path)
  onTestFinished(() => {
    if (opened.isOpen) opened.close()
  })
  return opened
}
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hatchway-migrate-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}
const versionOf = (opened: DatabaseSync) => opened.prepare('PRAGMA user_version').get()?.user_version
const columnsOf = (opened: DatabaseSync, table: string) =>
  opened
    .prepare(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name)

/** A database as the first version left it, with something in it. */
function firstVersion(path?: string): DatabaseSync {
  const opened = database(path)
  migrate(opened, first)
  opened.exec(`
    INSERT INTO meta (key, value) VALUES ('task_counter', '7');
    INSERT INTO groups (folder, jid, name, main, dialect, trigger_text, requires_trigger, channel, added_at)
      VALUES ('main', 'main@chat', 'Main', 1, 'nanoclaw', NULL, 0, NULL, 1769900000000);
  `)
  return opened
}

test('versions count up from one, without gaps', () => {
  expect(readMigrations().map(({ version }) => version)).toEqual(readMigrations().map((_, i) => i + 1))
})

test('a fresh database gets everything, and a second run changes nothing', () => {
  const opened = database()
  migrate(opened)
  expect(versionOf(opened)).toBe(readMigrations().at(-1)?.version)
  const schema = () => opened.prepare('SELECT sql FROM sqlite_schema').all()
  const before = schema()
  expect(before.length).toBeGreaterThan(0)
  migrate(opened)
  expect(schema()).toEqual(before)
})

test('a database of an earlier version is brought up to date, step by step, and keeps its rows', () => {
  const opened = firstVersion()
  const later = [
    ...first,
    {
      version: 2,
      sql: "ALTER TABLE groups ADD COLUMN note TEXT; UPDATE groups SET note = 'from ' || folder",
    },
    { version: 3, sql: 'CREATE TABLE notes AS SELECT note FROM groups' },
  ]
  migrate(opened, later)
  expect(versionOf(opened)).toBe(3)
  expect(opened.prepare('SELECT folder, jid, note FROM groups').all()).toEqual([
    { folder: 'main', jid: 'main@chat', note: 'from main' },
  ])
  expect(opened.prepare('SELECT note FROM notes').all()).toEqual([{ note: 'from main' }])
  expect(opened.prepare("SELECT value FROM meta WHERE key = 'task_counter'").get()).toEqual({ value: '7' })
})

test('a migration that fails leaves the version before it, whole', () => {
  const opened = firstVersion()
  const half = {
    version: 3,
    sql: 'CREATE TABLE notes (note TEXT); DELETE FROM groups; INSERT INTO nowhere VALUES (1)',
  }
  const later = [...first, { version: 2, sql: 'ALTER TABLE groups ADD COLUMN note TEXT' }, half]
  expect(() => migrate(opened, later)).toThrow('no such table: nowhere')
  expect(opened.isTransaction).toBe(false)
  expect(versionOf(opened)).toBe(2)
  expect(columnsOf(opened, 'groups')).toContain('note')
  expect(columnsOf(opened, 'notes')).toEqual([])
  expect(opened.prepare('SELECT count(*) AS count FROM groups').get()).toEqual({ count: 1 })

  // The mended version goes on from there.
  migrate(opened, [...later.slice(0, 2), { version: 3, sql: 'CREATE TABLE notes (note TEXT)' }])
  expect(versionOf(opened)).toBe(3)
})

test('what runs of their own had read, and results that are there, belong to the group’s files after an upgrade', () => {
  const opened = database()
  const known = readMigrations()
  migrate(
    opened,
    known.slice(
      0,
      known.findIndex(({ sql }) => sql.includes("'run:%'")),
    ),
  )
  opened.exec(`
    INSERT INTO taints VALUES ('work', 'run:1', 5, 'mail', NULL, NULL), ('work', 'given', 6, 'page', 7, 'diary'),
      ('main', 'session', 1, 'page', NULL, NULL), ('main', 'run:2', 2, 'mail', 3, 'diary');
    INSERT INTO tasks (id, group_folder, jid, created_by, prompt, schedule_type, schedule_value, timezone, context_mode,
      status, last_result, created_at) VALUES ('1', 'main', 'm', 'main', 'p', 'once', '', 'UTC', 'group', 'completed', 'x', 1);
  `)
  migrate(opened)
  expect(
    opened
      .prepare('SELECT * FROM taints')
      .all()
      .map(row => Object.values(row)),
  ).toEqual([
    ['main', 'result:1', 1, 'page', 3, 'diary'],
    ['main', 'session', 1, 'page', 3, 'diary'],
    ['work', 'session', 5, 'mail', 7, 'diary'],
  ])
  opened.exec('DELETE FROM tasks')
  expect(opened.prepare("SELECT context FROM taints WHERE context LIKE 'result:%'").all()).toEqual([])
})

test('what groups whose folders differ in case only had read is one after an upgrade, and so is when they were wiped', () => {
  const opened = database()
  const known = readMigrations()
  const before = known.findIndex(({ sql }) => sql.includes('group_folder TEXT NOT NULL COLLATE NOCASE'))
  migrate(opened, known.slice(0, before))
  opened.exec(`
    INSERT INTO taints VALUES ('Work', 'session', 5, 'mail', NULL, NULL), ('work', 'session', 6, 'page', 7, 'diary'),
      ('work', 'task:1', 1, 'page', NULL, NULL), ('work', 'task:A', 1, 'page', NULL, NULL);
    INSERT INTO meta (key, value) VALUES ('wiped Work', '8'), ('wiped work', '10'), ('wiped Main', '9'), ('Other', 'Kept');
    INSERT INTO tasks (id, group_folder, jid, created_by, prompt, schedule_type, schedule_value, timezone, context_mode,
      status, created_at) VALUES ('1', 'WORK', 'm', 'main', 'p', 'once', '', 'UTC', 'group', 'completed', 1);
  `)
  migrate(opened)
  const all = (sql: string) =>
    opened
      .prepare(sql)
      .all()
      .map(row => Object.values(row))
  expect(all('SELECT * FROM taints')).toEqual([
    ['Work', 'session', 5, 'mail', 7, 'diary'],
    ['work', 'task:1', 1, 'page', null, null],
    ['work', 'task:A', 1, 'page', null, null],
  ])
  const keys = "SELECT key, value FROM meta WHERE key LIKE 'wiped %' OR key = 'Other' ORDER BY key"
  expect(all(keys)).toEqual([
    ['Other', 'Kept'],
    ['wiped main', '9'],
    ['wiped work', '10'],
  ])
  opened.exec('DELETE FROM tasks')
  expect(all('SELECT context FROM taints')).toEqual([['session'], ['task:A']])
})

test('cards, and requests of people to be let in, are the host’s words after an upgrade, and all else the agent’s', () => {
  const opened = database()
  const known = readMigrations()
  const before = known.findIndex(({ sql }) => sql.includes('ADD COLUMN author'))
  migrate(opened, known.slice(0, before))
  const request = [
    '"Eve" (telegram "42") asks to talk to me, in a chat of their own: "telegram:42".',
    'To let them in, write: pair BXJTM-ZTHBR FOLDER (and a trigger word, if I should answer only when called)',
    'To refuse, write: refuse BXJTM-ZTHBR',
  ].join('\n')
  const rows = [
    ['text', 'hello'],
    ['text', request],
    ['approval', 'allow it?'],
    ['edit', 'allowed'],
    ['progress', 'Working…'],
    ['question', 'which?'],
    ['reaction', '👍'],
  ] as const
  const insert = opened.prepare(
    `INSERT INTO messages (group_folder, jid, kind, text, status, attempts, next_attempt_at, created_at)
     VALUES ('main', 'main@chat', ?, ?, 'sent', 1, 0, 0)`,
  )
  for (const row of rows) insert.run(...row)
  migrate(opened)
  const authors = opened.prepare('SELECT author FROM messages ORDER BY id').all()
  expect(authors.map(({ author }) => author)).toEqual([
    ...['agent', 'host', 'host', 'host', 'host', 'agent', 'agent'],
  ])
})

test('a store of a newer version is left alone, with a sentence that says what to do', () => {
  const path = join(folder(), 'hatchway.db')
  const opened = firstVersion(path)
  opened.exec('PRAGMA user_version = 99')
  const newest = readMigrations().at(-1)?.version
  const sentence = `written by a newer Hatchway (store version 99, this one knows ${newest}). Upgrade Hatchway`
  expect(() => migrate(opened)).toThrow(StoreTooNew)
  opened.close()
  expect(() => openStore({ path, durability: 'full' })).toThrow(sentence)
  const copy = `${path}-copy`
  copyFileSync(path, copy)
  const again = database(copy)
  expect(versionOf(again)).toBe(99)
  expect(again.prepare('SELECT folder FROM groups').all()).toEqual([{ folder: 'main' }])
})

test('the store that is opened today reads what the first version wrote', () => {
  const path = join(folder(), 'hatchway.db')
  firstVersion(path).close()
  const store = openStore({ path, durability: 'full' })
  expect(store.groups()).toMatchObject([
    { folder: 'main', jid: 'main@chat', main: true, dialect: 'nanoclaw' },
  ])
  expect(store.meta('task_counter')).toBe('7')
  store.close()
})
