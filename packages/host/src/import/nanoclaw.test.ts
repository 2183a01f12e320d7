import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { configFor } from '../../../testing/src/daemon/in-process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import { openStore } from '../store/sqlite.ts'
import { importNanoClaw } from './nanoclaw.ts'

/** An installation as NanoClaw 1.2 leaves it, with its tables and directories. */
function nanoclaw(): string {
  const home = temporaryFolder('nanoclaw')
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  for (const path of [
    'store',
    'groups/main',
    'groups/family/notes',
    'groups/family/logs',
    'groups/global',
    'data/ipc/family/tasks',
  ])
    mkdirSync(join(home, path), { recursive: true })
  const database = new DatabaseSync(join(home, 'store', 'messages.db'))
  database.exec(`
    PRAGMA journal_mode = WAL;
    CREATE TABLE chats (jid TEXT PRIMARY KEY, name TEXT, last_message_time TEXT, channel TEXT, is_group INTEGER DEFAULT 0);
    CREATE TABLE messages (id TEXT, chat_jid TEXT, sender TEXT, sender_name TEXT, content TEXT, timestamp TEXT,
      is_from_me INTEGER, is_bot_message INTEGER DEFAULT 0, PRIMARY KEY (id, chat_jid),
      FOREIGN KEY (chat_jid) REFERENCES chats(jid));
    CREATE TABLE scheduled_tasks (id TEXT PRIMARY KEY, group_folder TEXT NOT NULL, chat_jid TEXT NOT NULL,
      prompt TEXT NOT NULL, schedule_type TEXT NOT NULL, schedule_value TEXT NOT NULL, next_run TEXT, last_run TEXT,
      last_result TEXT, status TEXT DEFAULT 'active', created_at TEXT NOT NULL);
    CREATE TABLE task_run_logs (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_at TEXT NOT NULL,
      duration_ms INTEGER NOT NULL, status TEXT NOT NULL, result TEXT, error TEXT,
      FOREIGN KEY (task_id) REFERENCES scheduled_tasks(id));
    CREATE TABLE router_state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE sessions (group_folder TEXT PRIMARY KEY, session_id TEXT NOT NULL);
    CREATE TABLE registered_groups (jid TEXT PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL UNIQUE,
      trigger_pattern TEXT NOT NULL, added_at TEXT NOT NULL, container_config TEXT, requires_trigger INTEGER DEFAULT 1);
    ALTER TABLE scheduled_tasks ADD COLUMN context_mode TEXT DEFAULT 'isolated';
    ALTER TABLE scheduled_tasks ADD COLUMN script TEXT;
    ALTER TABLE registered_groups ADD COLUMN is_main INTEGER DEFAULT 0;
    INSERT INTO chats VALUES ('1234@g.us', 'Family', '2026-01-01T00:00:00.000Z', 'whatsapp', 1);
    INSERT INTO messages VALUES ('m1', '1234@g.us', 'a', 'Ana', 'hello', '2026-01-01T00:00:00.000Z', 0, 0);
    INSERT INTO sessions VALUES ('family', '0199c0de');
    INSERT INTO registered_groups VALUES
      ('me@s.whatsapp.net', 'Main', 'main', '@Andy', '2026-01-01T00:00:00.000Z', NULL, 0, 1),
      ('1234@g.us', 'Family', 'family', '@Andy', '2026-01-01T00:00:00.000Z',
        '{"additionalMounts":[{"hostPath":"/srv/photos","containerPath":"photos","readonly":true}],"timeout":600000}', 1, 0),
      ('tg:5', 'Open', 'open', '@Andy', '2026-01-01T00:00:00.000Z', NULL, 0, 0),
      ('tg:6', 'Bad', '../escape', '@Andy', '2026-01-01T00:00:00.000Z', NULL, 1, 0);
    INSERT INTO scheduled_tasks
        (id, group_folder, chat_jid, prompt, schedule_type, schedule_value, next_run, last_run, last_result, status, created_at, context_mode, script)
      VALUES ('task-1', 'family', '1234@g.us', 'water the plants', 'cron', '0 9 * * 1', '2031-01-06T09:00:00.000Z',
          '2026-01-05T09:00:00.000Z', 'watered', 'active', '2026-01-01T00:00:00.000Z', 'group', NULL),
        ('task-2', 'main', 'me@s.whatsapp.net', 'weekly', 'interval', '604800000', '2031-01-02T03:04:05.000Z', NULL, NULL,
          'paused', '2026-01-01T00:00:00.000Z', 'isolated', 'echo hi'),
        ('task-3', 'family', '1234@g.us', 'the party', 'once', '2031-05-01T18:00:00', '2031-05-01T18:00:00.000Z', NULL, NULL,
          'active', '2026-01-01T00:00:00.000Z', NULL, NULL),
        ('task-4', 'family', '1234@g.us', 'gone by', 'once', '2020-05-01T18:00:00', '2020-05-01T18:00:00.000Z', NULL, NULL,
          'active', '2026-01-01T00:00:00.000Z', NULL, NULL),
        ('task-5', 'family', '1234@g.us', 'over', 'cron', '0 9 * * *', NULL, NULL, NULL, 'completed', '2026-01-01T00:00:00.000Z', NULL, NULL),
        ('task-6', 'nobody', 'x', 'whose', 'cron', '0 9 * * *', NULL, NULL, NULL, 'active', '2026-01-01T00:00:00.000Z', NULL, NULL),
        ('task-7', 'family', '1234@g.us', 'bad', 'interval', '12abc', NULL, NULL, NULL, 'active', '2026-01-01T00:00:00.000Z', NULL, NULL);
  `)
  database.close()
  writeFileSync(join(home, 'groups/main/CLAUDE.md'), '# Main')
  writeFileSync(join(home, 'groups/family/CLAUDE.md'), '# Family')
  writeFileSync(join(home, 'groups/family/notes/list.md'), 'milk')
  writeFileSync(join(home, 'groups/family/logs/container.log'), 'noise')
  writeFileSync(join(home, 'groups/global/CLAUDE.md'), '# All')
  symlinkSync('/etc/passwd', join(home, 'groups/family/link'))
  writeFileSync(join(home, 'data/ipc/family/tasks/1.json'), '{}')
  writeFileSync(join(home, '.env'), 'ANTHROPIC_API_KEY=x')
  return home
}

function open() {
  const home = temporaryFolder('import')
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const config = configFor(join(home, 'data'), { agents: { enabled: 'no' } })
  const stored = () => {
    const store = openStore({ path: layoutOf(config.data).database, durability: 'process' })
    const all = { groups: store.groups(), tasks: store.tasks({}) }
    store.close()
    return all
  }
  return { config, stored }
}

/** Everything below a directory with its content and time, to compare. */
function seal(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map(name => {
      const about = statSync(join(path, name), { throwIfNoEntry: false })
      return `${name} ${about?.isFile() ? readFileSync(join(path, name)).toString('base64') : ''} ${about?.mtimeMs}`
    })
}

const told = (report: Awaited<ReturnType<typeof importNanoClaw>>) =>
  report.lines.map(({ kind, name, state }) => `${state} ${kind} ${name}`)

test('groups, files and tasks of a NanoClaw installation are taken over, and nothing there is touched', async () => {
  const from = nanoclaw()
  const { config, stored } = open()
  const before = seal(from)
  const dry = await importNanoClaw(config, from, { dryRun: true })
  expect(existsSync(config.data)).toBe(false)
  const report = await importNanoClaw(config, from, { timezone: 'Europe/Lisbon' })
  expect(seal(from)).toEqual(before)
  expect(dry.lines).toEqual(report.lines)
  expect(told(report)).toEqual([
    'taken group main',
    'taken group family',
    'left note family',
    'left note family',
    'taken group open',
    'left group ../escape',
    'taken files main',
    'taken files family',
    'taken files global',
    'taken task task-1',
    'taken task task-2',
    'taken task task-3',
    'left task task-4',
    'left task task-5',
    'left task task-6',
    'left task task-7',
    'left note data/ipc',
    'left note sessions',
    'left note messages',
    'left note .env',
  ])
  expect(report.lines.find(({ kind, name }) => kind === 'note' && name === 'family')?.says).toContain(
    "groups: { 'family': { mounts: [{ from: '/srv/photos', to: 'photos' }] } }",
  )
  const { groups, tasks } = stored()
  expect(groups).toMatchObject([
    { folder: 'main', jid: 'me@s.whatsapp.net', main: true, dialect: 'nanoclaw', requires_trigger: false },
    { folder: 'family', main: false, trigger: '@Andy', requires_trigger: true, channel: 'whatsapp' },
    { folder: 'open', main: false, requires_trigger: false, channel: null },
  ])
  expect(tasks.map(task => task.id).sort()).toEqual(['task-1', 'task-2', 'task-3'])
  expect(tasks.find(({ id }) => id === 'task-1')).toMatchObject({
    group: 'family',
    timezone: 'Europe/Lisbon',
    context_mode: 'group',
    status: 'active',
    last_run: '2026-01-05T09:00:00.000Z',
    last_result: 'watered',
  })
  expect(tasks.find(({ id }) => id === 'task-2')).toMatchObject({
    status: 'paused',
    next_run: '2031-01-02T03:04:05.000Z',
    context_mode: 'isolated',
    script: 'echo hi',
  })
  const files = join(config.data, 'groups')
  expect(readFileSync(join(files, 'family', 'notes', 'list.md'), 'utf8')).toBe('milk')
  expect(readdirSync(join(files, 'family')).sort()).toEqual(['CLAUDE.md', 'notes'])
  expect(readFileSync(join(files, 'global', 'CLAUDE.md'), 'utf8')).toBe('# All')
})

test('doing it again changes nothing more, and keeps what was changed here meanwhile', async () => {
  const from = nanoclaw()
  const { config, stored } = open()
  await importNanoClaw(config, from)
  writeFileSync(join(config.data, 'groups', 'family', 'CLAUDE.md'), '# changed here')
  const before = stored()
  const again = await importNanoClaw(config, from)
  expect(stored()).toEqual(before)
  expect(again.lines.filter(({ state }) => state === 'taken')).toEqual([])
  expect(readFileSync(join(config.data, 'groups', 'family', 'CLAUDE.md'), 'utf8')).toBe('# changed here')
  expect(again.lines.find(({ kind, name }) => kind === 'files' && name === 'family')?.says).toContain(
    '1 differ',
  )
})

test('a folder and a chat that somebody has here are left to them', async () => {
  const from = nanoclaw()
  const { config, stored } = open()
  await registerGroups(config, [
    { folder: 'family', jid: 'web:family', name: 'Ours', main: false, dialect: 'hatchway' },
    { folder: 'mine', jid: 'tg:5', name: 'Ours', main: false, dialect: 'hatchway' },
  ])
  const report = await importNanoClaw(config, from)
  expect(told(report)).toContain('left group family')
  expect(told(report)).toContain('left group open')
  expect(told(report)).toContain('left task task-1')
  expect(
    stored()
      .groups.map(({ folder, jid }) => `${folder} ${jid}`)
      .sort(),
  ).toEqual(['family web:family', 'main me@s.whatsapp.net', 'mine tg:5'])
  expect(existsSync(join(config.data, 'groups', 'family', 'CLAUDE.md'))).toBe(false)
})

test('an early version with its groups in a file is understood; another version and no installation are refused', async () => {
  const from = nanoclaw()
  const database = new DatabaseSync(join(from, 'store', 'messages.db'))
  database.exec('DROP TABLE registered_groups')
  database.close()
  writeFileSync(
    join(from, 'data', 'registered_groups.json'),
    JSON.stringify({ '1234@g.us': { name: 'Family', folder: 'family', trigger: '@Andy', added_at: 'x' } }),
  )
  const { config, stored } = open()
  await importNanoClaw(config, from)
  expect(stored().groups).toMatchObject([{ folder: 'family', jid: '1234@g.us', trigger: '@Andy' }])

  rmSync(join(from, 'store'), { recursive: true })
  await expect(importNanoClaw(config, from)).rejects.toThrow('has no store/messages.db')
  writeFileSync(join(from, 'data', 'v2.db'), '')
  await expect(importNanoClaw(config, from)).rejects.toThrow('NanoClaw 2')
  mkdirSync(join(from, 'store'))
  writeFileSync(join(from, 'store', 'messages.db'), 'no database at all'.repeat(100))
  chmodSync(join(from, 'store'), 0o700)
  await expect(importNanoClaw(config, from)).rejects.toThrow('cannot be read as NanoClaw’s')
})

test('a dry run refuses what the import refuses, changes nothing, and does not run beside a daemon', async () => {
  const from = nanoclaw()
  const { config, stored } = open()
  await registerGroups(config, [
    { folder: 'boss', jid: 'web:boss', name: 'Ours', main: true, dialect: 'hatchway' },
  ])
  const database = new DatabaseSync(join(from, 'store', 'messages.db'))
  database.exec(`
    UPDATE scheduled_tasks SET schedule_value = '61 9 * * 1' WHERE id = 'task-1';
  `)
  database.close()
  const before = stored()
  const dry = await importNanoClaw(config, from, { dryRun: true })
  expect(stored()).toEqual(before)
  expect(readdirSync(join(config.data, 'groups'))).not.toContain('family')
  expect(told(dry)).toEqual(expect.arrayContaining(['left task task-1', 'left task task-7']))
  expect((await importNanoClaw(config, from)).lines).toEqual(dry.lines)
})

test('skills and settings go along, keys do not; what its instructions say of paths that are gone is told', async () => {
  const from = nanoclaw()
  const put = (path: string, content: string) => {
    mkdirSync(join(from, path, '..'), { recursive: true })
    writeFileSync(join(from, path), content)
  }
  const env = { CLAUDE_CODE_DISABLE_AUTO_MEMORY: '0', ANTHROPIC_BASE_URL: 'http://10.0.0.1', MY_TOKEN: 'x' }
  put('data/sessions/family/.claude/settings.json', JSON.stringify({ env, model: 'small' }))
  put('data/sessions/family/.claude/skills/own/SKILL.md', 'own')
  put('data/sessions/family/.claude/skills/status/SKILL.md', 'old')
  put('data/sessions/family/.claude/projects/x.jsonl', 'a conversation')
  put('container/skills/status/SKILL.md', 'new')
  put('container/agent-runner/src/index.ts', 'stock')
  put('data/sessions/family/agent-runner-src/index.ts', 'changed')
  put('data/sessions/main/agent-runner-src/index.ts', 'stock')
  put(
    'groups/main/CLAUDE.md',
    '# Main\nsqlite3 /workspace/project/store/messages.db\nRead `/workspace/project/data/registered_groups.json`.\nWrite to `/workspace/global/CLAUDE.md`.\n',
  )
  const { config } = open()
  const dry = await importNanoClaw(config, from, { dryRun: true })
  const report = await importNanoClaw(config, from)
  expect(dry.lines).toEqual(report.lines)
  const home = join(config.data, 'groups', 'family', '.home', '.claude')
  expect(JSON.parse(readFileSync(join(home, 'settings.json'), 'utf8'))).toEqual({
    model: 'small',
    env: { CLAUDE_CODE_DISABLE_AUTO_MEMORY: '0' },
  })
  expect(readdirSync(home).sort()).toEqual(['settings.json', 'skills'])
  expect(readFileSync(join(home, 'skills/own/SKILL.md'), 'utf8')).toBe('own')
  expect(readFileSync(join(home, 'skills/status/SKILL.md'), 'utf8')).toBe('new')
  expect(statSync(home).uid).toBe(statSync(join(config.data, 'groups', 'family')).uid)
  const says = (name: string, kind: string) =>
    report.lines.filter(line => line.name === name && line.kind === kind).map(line => line.says)
  expect(says('family/.claude', 'files')).toEqual([
    expect.stringContaining('env.ANTHROPIC_BASE_URL, env.MY_TOKEN'),
  ])
  expect(says('family', 'note').join()).toContain('agent-runner-src')
  expect(says('main', 'note')).toEqual([])
  const [paths] = says('groups/main/CLAUDE.md', 'note')
  expect(paths).toContain('/workspace/project/store/messages.db (line 2): ')
  expect(paths).toContain(
    '/workspace/project/data/registered_groups.json (line 3): /workspace/ipc/available_groups.json',
  )
  expect(paths).toContain('/workspace/global (line 4): it is read-only')
  expect(report.lines.some(({ name }) => name === 'groups/family/CLAUDE.md')).toBe(false)
})

test('a link in the place of a group’s home is not followed', async () => {
  const from = nanoclaw()
  mkdirSync(join(from, 'container/skills/status'), { recursive: true })
  writeFileSync(join(from, 'container/skills/status/SKILL.md'), 'x')
  const { config } = open()
  const elsewhere = temporaryFolder('elsewhere')
  onTestFinished(() => rmSync(elsewhere, { recursive: true }))
  mkdirSync(join(config.data, 'groups', 'family'), { recursive: true })
  symlinkSync(elsewhere, join(config.data, 'groups', 'family', '.home'))
  const report = await importNanoClaw(config, from)
  expect(told(report)).toContain('left files family/.claude')
  expect(readdirSync(elsewhere)).toEqual([])
})
