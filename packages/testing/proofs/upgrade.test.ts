import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { brotliDecompressSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { createLayout, type Layout, layoutOf } from '../../host/src/base/layout.ts'
import { inspectStore } from '../../host/src/store/inspect.ts'
import { migrate, newestVersion, readMigrations } from '../../host/src/store/migrate.ts'
import { openStore } from '../../host/src/store/sqlite.ts'
import { openLive } from '../src/daemon/in-process.ts'
import { launch } from '../src/daemon/process.ts'
import { temporaryFolder } from '../src/folders.ts'
import { until } from '../src/until.ts'

/**
 * A data directory as the first version of the store left it when it was killed at work: rows in every table, a file
 * that waits, one that is claimed, one that is decided, and one that was refused. All of it is written down here as
 * that version wrote it, so that whatever comes later still has to understand it.
 */
function firstVersion(): { data: string; layout: Layout } {
  const data = temporaryFolder('upgrade')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const layout = layoutOf(data)
  createLayout(layout)
  const database = new DatabaseSync(layout.database)
  migrate(database, readMigrations().slice(0, 1))
  database.exec(`
    INSERT INTO meta (key, value) VALUES ('task_counter', '3');
    INSERT INTO groups (folder, jid, name, main, dialect, trigger_text, requires_trigger, channel, added_at)
      VALUES ('main', 'main@chat', 'Main', 1, 'hatchway', NULL, 0, NULL, 1769900000000),
             ('family', 'family@chat', 'Family', 0, 'nanoclaw', '@Andy', 1, 'whatsapp', 1769900000001);
    INSERT INTO tasks (id, group_folder, jid, created_by, prompt, schedule_type, schedule_value, timezone,
        context_mode, status, next_run, created_at)
      VALUES ('3', 'family', 'family@chat', 'main', 'water the plants', 'cron', '0 9 * * *', 'Europe/Berlin',
        'group', 'active', 4102444800000, 1769900000002),
             ('done', 'family', 'family@chat', 'family', 'over', 'once', '2026-01-01T00:00:00Z', 'UTC',
        'isolated', 'cancelled', NULL, 1769900000003);
    INSERT INTO commands (seq, group_folder, directory, file, inode, mtime_us, dialect, type, request_id, reply,
        outcome, received_at, took_us)
      VALUES (10, 'family', 'tasks', 'refused.json', 1, 1, 'hatchway', 'pause_task', 'r10',
        '{"directory":"responses","id":"r10","shape":"receipt"}',
        '{"ok":false,"error":{"code":"not_found","message":"There is no task with this id."}}', 1769900000004, 5),
             (11, 'main', 'tasks', 'decided.json', 2, 2, 'hatchway', 'send_message', 'r11',
        '{"directory":"responses","id":"r11","shape":"receipt"}',
        '{"ok":true,"result":{"message_id":"11","status":"queued"}}', 1769900000005, 5);
    INSERT INTO messages (id, group_folder, jid, kind, text, status, attempts, next_attempt_at, created_at)
      VALUES (11, 'main', 'main@chat', 'text', 'decided', 'pending', 0, 1769900000005, 1769900000005);
  `)
  database.close()

  const ask = (id: string, type: string, payload: object) => JSON.stringify({ version: 1, id, type, payload })
  mkdirSync(join(layout.spool, '0'), { mode: 0o700 })
  writeFileSync(
    join(layout.spool, '0', '11~main~tasks~decided.json'),
    ask('r11', 'send_message', { text: 'decided' }),
  )
  writeFileSync(
    join(layout.spool, '0', '12~main~tasks~claimed.json'),
    ask('r12', 'send_message', { text: 'claimed' }),
  )
  for (const folder of ['main', 'family']) mkdirSync(join(layout.ipc, folder, 'tasks'), { recursive: true })
  writeFileSync(
    join(layout.ipc, 'main', 'tasks', 'waiting.json'),
    ask('r13', 'schedule_task', { prompt: 'new', schedule_type: 'interval', schedule_value: '60000' }),
  )
  const refused = join(layout.errors, 'family-e.10-refused.json.error')
  writeFileSync(refused, ask('r10', 'pause_task', { task_id: '3' }))
  writeFileSync(
    `${refused}.json`,
    JSON.stringify({
      id: '10',
      original_file: 'refused.json',
      error: 'There is no task with this id.',
      processed_at: '2026-02-01T00:00:00.004Z',
      source_group: 'family',
      directory: 'tasks',
      code: 'not_found',
      type: 'pause_task',
      kept: true,
      size: 70,
      count: 1,
    }),
  )
  return { data, layout }
}

test('a data directory of the first version is taken over with everything in it', async () => {
  const { data, layout } = firstVersion()
  const live = await openLive({}, data)
  onTestFinished(() => live.close())
  const { store } = live.host
  expect(store.groups()).toMatchObject([
    { folder: 'main', main: true, dialect: 'hatchway', requires_trigger: false },
    { folder: 'family', main: false, dialect: 'nanoclaw', trigger: '@Andy', channel: 'whatsapp' },
  ])
  await live.start()

  const answer = (folder: string, id: string): unknown =>
    JSON.parse(readFileSync(join(layout.ipc, folder, 'responses', `${id}.json`), 'utf8'))
  // What was decided is answered, and not done again; what was not, is done; what waited, follows.
  expect(answer('main', 'r11')).toMatchObject({ ok: true, result: { message_id: '11' } })
  expect(answer('main', 'r12')).toMatchObject({ ok: true })
  expect(answer('main', 'r13')).toMatchObject({ ok: true, result: { task_id: '4' } })
  expect(store.messages({}).map(({ text }) => text)).toEqual(['decided', 'claimed'])
  await until('all are delivered', () => store.messages({ status: 'sent' }).length === 2)
  expect(store.tasks({}).map(({ id, status }) => `${id} ${status}`)).toEqual([
    '3 active',
    'done cancelled',
    '4 active',
  ])

  // What came with later versions works on what the first one left.
  expect(store.agents.task('3')).toMatchObject({ prompt: 'water the plants', timezone: 'Europe/Berlin' })
  expect(store.agents.dueTasks(4_102_444_800_000, 10)).toMatchObject([{ id: '4' }, { id: '3' }])
  store.agents.setSession('family', 'session')
  expect(store.agents.session('family')).toBe('session')
  expect(await live.host.replay('10')).toMatchObject({ ok: true })
  await until('it is handled', () => store.tasks({}).some(({ status }) => status === 'paused'))
  await until('errors/ is empty', () => readdirSync(layout.errors).length === 0)
  // The first version had no directory for answers there: it is made with the first one.
  await until('it is answered', () => existsSync(join(layout.ipc, 'family', 'responses', 'r10.json')))
  expect(answer('family', 'r10')).toMatchObject({ ok: true, result: { task_id: '3', status: 'paused' } })
})

/**
 * Made by the version before plugins (commit 7879700), which wrote all of it itself. A daemon without agents and web server
 * was started in an empty directory with `up --create-main`. With the command line, a NanoClaw group `family`, a task `plants`
 * and a paused task `old` were added; `post` then sent a message (m1), saved a memory (s1), added a todo (t1), made a
 * mistake (r1) and sent a token to another chat, which was held for approval (a1). The daemon was killed with SIGKILL, and
 * waiting.json was put into main's tasks/. state/daemon.json, the lock and the socket were removed, and the rest went into a
 * tar file, compressed with brotli.
 */
function versionBefore(): { data: string; layout: Layout } {
  const data = temporaryFolder('upgrade')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const archive = readFileSync(join(import.meta.dirname, 'upgrade', 'killed-at-work.tar.br'))
  execFileSync('tar', ['-x', '--no-same-owner', '-C', data], { input: brotliDecompressSync(archive) })
  return { data, layout: layoutOf(data) }
}

test('a data directory that the version before plugins left when it was killed goes back to work', async () => {
  const { data, layout } = versionBefore()
  // People had five minutes to decide. Here they have all the time, whatever the clock says.
  const database = new DatabaseSync(layout.database)
  database.exec(
    'UPDATE requests SET expires_at = 4102444800000; UPDATE approvals SET expires_at = 4102444800000',
  )
  database.close()
  const live = await openLive({}, data)
  onTestFinished(() => live.close())
  const { store } = live.host
  await live.start()

  const answerTo = async (id: string): Promise<unknown> => {
    const path = join(layout.ipc, 'main', 'responses', `${id}.json`)
    await until(`${id} is answered`, () => existsSync(path))
    return JSON.parse(readFileSync(path, 'utf8'))
  }
  const ask = (id: string, tool: string, input: object) => {
    const payload = { tool, arguments: input }
    writeFileSync(
      join(layout.ipc, 'main', 'tasks', `${id}.json`),
      JSON.stringify({ version: 1, id, type: 'call_service', payload }),
    )
    return answerTo(id)
  }
  expect(store.groups()).toMatchObject([
    { folder: 'main', main: true, dialect: 'hatchway' },
    { folder: 'family', main: false, dialect: 'nanoclaw', trigger: '@Hatch' },
  ])
  // What waited is done; what was held is still held, and is sent once it is allowed.
  expect(await answerTo('w1')).toMatchObject({ ok: true, result: { task_id: '1' } })
  const [held] = store.approvals.open()
  expect(held?.group).toBe('main')
  expect(live.host.chats?.approvals?.decide(String(held?.seq), { decision: 'allow' })).toMatchObject({
    ok: true,
  })
  expect(await answerTo('a1')).toMatchObject({ ok: true })
  expect(store.tasks({}).map(({ id, status }) => `${id} ${status}`)).toEqual([
    'plants active',
    'old paused',
    '1 active',
  ])
  expect(store.messages({}).map(({ jid, kind }) => `${jid} ${kind}`)).toEqual([
    'local:main text',
    'local:main approval',
    'web:family text',
  ])
  // Services find what they had stored.
  expect(await ask('n1', 'recall_memories', { query: 'Minka' })).toMatchObject({
    ok: true,
    result: { memories: [{ key: 'cat' }] },
  })
  expect(await ask('n2', 'list_todos', {})).toMatchObject({
    ok: true,
    result: { todos: [{ content: 'buy milk' }] },
  })
  expect(live.host.quarantine.list()).toMatchObject([{ code: 'not_found', source_group: 'family' }])
  // A repeated request gets the answer of the version before.
  rmSync(join(layout.ipc, 'main', 'responses', 'm1.json'))
  writeFileSync(
    join(layout.ipc, 'main', 'tasks', 'again.json'),
    JSON.stringify({ version: 1, id: 'm1', type: 'send_message', payload: { text: 'hello from before' } }),
  )
  expect(await answerTo('m1')).toMatchObject({ ok: true, result: { message_id: '6' } })
})

test.each(readMigrations().map(({ version }) => version))(
  'a store of version %i is looked at as it is, and taken over with what is in it',
  async version => {
    const { layout } = firstVersion()
    const database = new DatabaseSync(layout.database)
    migrate(
      database,
      readMigrations().filter(migration => migration.version <= version),
    )
    if (version >= 2) database.exec("INSERT INTO sessions VALUES ('family', 'a session')")
    if (version >= 3)
      database.exec(
        "INSERT INTO todos VALUES ('family', '0000abcd', 'water the plants', 0, 1769900000000, NULL)",
      )
    database.close()
    expect(await inspectStore(layout.database)).toMatchObject({
      version,
      newest: newestVersion,
      damage: [],
      groups: [{ folder: 'family' }, { folder: 'main', main: true }],
      messages: { pending: 1, failed: 0 },
      audit: { ok: true },
    })
    const store = openStore({ path: layout.database, durability: 'process' })
    onTestFinished(() => store.close())
    expect(store.groups()).toHaveLength(2)
    expect(store.tasks({})).toMatchObject([
      { id: '3', status: 'active' },
      { id: 'done', status: 'cancelled' },
    ])
    expect(store.tasks({}).map(({ job }) => job)).toEqual([undefined, undefined])
    expect(store.messages({})).toMatchObject([{ text: 'decided', status: 'pending' }])
    expect(store.commands({ limit: 10 })).toHaveLength(2)
    if (version >= 2) expect(store.agents.session('family')).toBe('a session')
    if (version >= 3) expect(store.todos('family')).toHaveLength(1)
  },
)

test('a data directory of a newer version is not touched, and the daemon says why', async () => {
  const { data, layout } = firstVersion()
  const database = new DatabaseSync(layout.database)
  database.exec('PRAGMA user_version = 99')
  database.close()
  const daemon = launch(data)
  expect(await daemon.exited).toEqual({ code: 1, signal: null })
  expect(daemon.output()).toContain('written by a newer Hatchway (store version 99')
  expect(readdirSync(join(layout.spool, '0'))).toHaveLength(2)
  expect(readdirSync(join(layout.ipc, 'main', 'tasks'))).toEqual(['waiting.json'])

  const back = new DatabaseSync(layout.database)
  back.exec(`PRAGMA user_version = ${readMigrations()[0]?.version}`)
  back.close()
  const store = openStore({ path: layout.database, durability: 'full' })
  onTestFinished(() => store.close())
  expect(store.tasks({})).toHaveLength(2)
})
