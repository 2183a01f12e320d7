import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Task } from '@hatchway/protocol'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { StoreFailure, StoreUnusable } from '../base/storage-failure.ts'
import { migrate, readMigrations } from './migrate.ts'
import { type Durability, openStore } from './sqlite.ts'
import { groupOf as group } from './testing.ts'
import type { CommandRow, NewMessage, Store, Transaction } from './types.ts'

const storeModule = join(import.meta.dirname, 'sqlite.ts')

afterEach(() => vi.restoreAllMocks())

function databasePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'hatchway.db')
}
function open(path = databasePath(), durability: Durability = 'process'): Store {
  const store = openStore({ path, durability })
  onTestFinished(() => store.close())
  return store
}
const write = (store: Store, work: (transaction: Transaction) => void) => store.transaction(work)

const task = (id: string, status: Task['status'] = 'active'): Task => ({
  id,
  group: 'a',
  jid: 'a@chat',
  created_by: 'a',
  prompt: 'p',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '60000',
  timezone: 'UTC',
  context_mode: 'group',
  status,
  next_run: '2099-01-01T00:00:00.000Z',
  last_run: null,
  last_result: null,
  created_at: '2026-01-01T00:00:00.000Z',
})
const command = (seq: number, requestId: string | null = null): CommandRow => ({
  seq,
  group: 'a',
  directory: 'tasks',
  file: `${seq}.json`,
  inode: seq,
  mtimeUs: seq,
  dialect: 'hatchway',
  type: 'send_message',
  requestId,
  reply: requestId === null ? null : { directory: 'responses', id: requestId, shape: 'receipt' },
  outcome: { ok: true, result: { seq } },
  receivedAt: seq,
  tookUs: 1,
})
const message = (id: number): NewMessage => ({
  id,
  group: 'a',
  jid: 'a@chat',
  author: 'agent',
  kind: 'text',
  text: `m-${id}`,
  sender: null,
  speech: null,
  messageId: null,
  createdAt: id,
})
const contents = (store: Store) =>
  structuredClone({
    groups: store.groups(),
    tasks: store.tasks({}),
    messages: store.messages({}),
    commands: store.commands({ limit: 1000 }),
  })

describe('a transaction', () => {
  const everything = (transaction: Transaction) => {
    transaction.insertGroup(group('b'))
    transaction.deleteGroup('a')
    transaction.insertTask(task(transaction.newTaskId()))
    transaction.updateTask(task('kept', 'paused'))
    transaction.insertMessage(message(2))
    transaction.insertCommand(command(2, 'r2'))
  }
  const opened = () => {
    const store = open()
    write(store, transaction => {
      transaction.insertGroup(group('a'))
      transaction.insertTask(task('kept'))
      transaction.insertMessage(message(1))
      transaction.insertCommand(command(1, 'r1'))
    })
    return store
  }

  test('that fails in the middle leaves tables and registry as they were', () => {
    const store = opened()
    const before = contents(store)
    const failing = () =>
      write(store, transaction => {
        everything(transaction)
        expect(transaction.group('b')).toBeDefined()
        throw new Error('stumbled')
      })
    expect(failing).toThrow('stumbled')
    expect(contents(store)).toEqual(before)
    expect(store.group('a')).toBeDefined()
    expect(store.group('b')).toBeUndefined()
    write(store, transaction => {
      expect(transaction.isFolderTaken('B')).toBe(false)
      expect(transaction.groupByJid('b@chat')).toBeUndefined()
      expect(transaction.answered('a', 'r2')).toBeUndefined()
    })

    // Nothing stands in the way of doing it again.
    write(store, everything)
    expect(store.groups()).toEqual([group('b')])
    expect(store.tasks({})).toMatchObject([
      { id: 'kept', status: 'paused' },
      { id: expect.stringMatching(/^\d+$/), status: 'active' },
    ])
  })

  test('that breaks a rule of the tables is the work’s fault, not the store’s', () => {
    const store = opened()
    const before = contents(store)
    const broken: ((transaction: Transaction) => void)[] = [
      transaction => transaction.insertCommand(command(1)),
      transaction => transaction.insertCommand(command(3, 'r1')),
      transaction => transaction.insertTask(task('kept')),
      transaction => transaction.insertGroup(group('B')),
      transaction => transaction.insertMessage(message(1)),
    ]
    for (const work of broken) {
      const error = failureOf(() =>
        write(store, transaction => {
          everything(transaction)
          work(transaction)
        }),
      )
      expect(error).toMatchObject({ code: 'ERR_SQLITE_ERROR', message: expect.stringContaining('UNIQUE') })
      expect(error).not.toBeInstanceOf(StoreFailure)
      expect(contents(store)).toEqual(before)
    }
  })

  test('is seen whole by whoever opens the store next', () => {
    const path = databasePath()
    const store = openStore({ path, durability: 'full' })
    write(store, transaction => {
      transaction.insertGroup(group('a'))
      transaction.insertTask(task('kept'))
      everything(transaction)
    })
    const before = contents(store)
    store.close()
    expect(contents(open(path))).toEqual(before)
  })

  test('gives task ids that nobody has, also after one was taken by name', () => {
    const path = databasePath()
    const ids: string[] = []
    for (let round = 0; round < 2; round++) {
      const store = openStore({ path, durability: 'process' })
      write(store, transaction => {
        for (let i = 0; i < 2; i++) {
          const id = transaction.newTaskId()
          ids.push(id)
          transaction.insertTask(task(id))
        }
        if (round === 0) transaction.insertTask(task('3'))
      })
      store.close()
    }
    expect(ids).toEqual(['1', '2', '4', '5'])
  })
})

const failureOf = (work: () => unknown): unknown => {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

/** Another process with a store of its own, which says what it has done and is not sorry when it ends. */
async function elsewhere(path: string, limit: string, script: string, untilLines: number) {
  const code = `
    const { openStore } = await import(${JSON.stringify(storeModule)})
    const store = openStore({ path: ${JSON.stringify(path)}, durability: 'process', prepare: false })
    const say = text => require('node:fs').writeSync(1, text + '\\n')
    const { createRequire } = await import('node:module')
    const require = createRequire(import.meta.url)
    const message = (id, text) => ({ id, group: 'a', jid: 'a@chat', author: 'agent', kind: 'text', text, sender: null, speech: null, messageId: null, createdAt: id })
    const insert = (id, text) => store.transaction(transaction => transaction.insertMessage(message(id, text)))
    ${script}
  `
  const child = spawn(
    'sh',
    ['-c', `${limit} exec "$0" --input-type=module --eval "$1"`, process.execPath, code],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const lines: string[] = []
  const ended = once(child, 'close')
  child.stdout.setEncoding('utf8')
  let rest = ''
  for await (const chunk of child.stdout) {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
    if (lines.length >= untilLines) child.kill('SIGKILL')
  }
  await ended
  return lines
}

test('what was committed before SIGKILL is there afterwards, and nothing is half there', async () => {
  const path = databasePath()
  const script = `for (let id = 1; ; id++) { insert(id, 'm-' + id); say(String(id)) }`
  const said = await elsewhere(path, '', script, 200)
  const store = open(path, 'full')
  const found = store.messages({}).map(({ text }) => text)
  expect(found).toEqual(found.map((_, i) => `m-${i + 1}`))
  expect(found.length).toBeGreaterThanOrEqual(Number(said.at(-1)))
  write(store, transaction => transaction.insertMessage(message(store.lastMessageId() + 1)))
})

test('a disk that takes no more is the store’s failure, leaves no trace, and what fits is taken again', async () => {
  const path = databasePath()
  // A limit on the size of a file is the only full disk a test may have for itself. In blocks of 512 bytes.
  const script = `
    let id = 0
    try { for (;;) { insert(id + 1, 'x'.repeat(100_000)); id++ } } catch (error) { say(error.name) }
    say(String(id))
    say(String(store.messages({}).length))
    process.exit()
  `
  const [name, done, found] = await elsewhere(path, 'ulimit -f 4096;', script, Number.POSITIVE_INFINITY)
  expect(name).toBe('StoreFailure')
  expect(found).toBe(done)
  const store = open(path)
  expect(store.messages({})).toHaveLength(Number(done))
  write(store, transaction => transaction.insertMessage(message(Number(done) + 1)))
  expect(store.messages({})).toHaveLength(Number(done) + 1)
})

test.each([
  ['full', 2],
  ['process', 1],
] as const)('durability %s is what SQLite is told', (durability, synchronous) => {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  onTestFinished(() => exec.mockRestore())
  open(databasePath(), durability)
  const database = exec.mock.contexts[0]
  if (!(database instanceof DatabaseSync)) throw new Error('no database was opened')
  expect(database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous })
  expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
})

describe('prune', () => {
  test('keeps the newest, and messages that are not delivered yet', () => {
    const store = open()
    write(store, transaction => {
      for (let i = 1; i <= 20; i++) {
        transaction.insertCommand(command(i, `r${i}`))
        transaction.insertMessage(message(i))
      }
    })
    const settled = { attempts: 1, nextAttemptAt: 0, partsSent: 1, partsTotal: 1, error: null, sentAt: 1 }
    store.settleMessages([
      ...[1, 2, 4, 5].map(id => ({ id, status: 'sent' as const, ...settled })),
      { id: 6, status: 'failed', ...settled },
    ])
    store.prune({ commands: 5, messages: 10, runs: 1, tasks: 1, usageDays: 1 })
    expect(store.commands({ limit: 100 }).map(({ seq }) => seq)).toEqual([16, 17, 18, 19, 20])
    expect(store.messages({}).map(({ id }) => id)).toEqual([
      3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ])
    write(store, transaction => {
      // What is forgotten is no longer known as a repeat.
      expect(transaction.answered('a', 'r15')).toBeUndefined()
      expect(transaction.answered('a', 'r16')).toMatchObject({ seq: 16 })
    })
    expect(store.lastSeq()).toBe(20)
  })

  test('keeps so many bytes of a group’s large messages, the newest, and what is not delivered', () => {
    const store = open()
    const large = (id: number, group: string, text = 'é'.repeat(1000)) => ({ ...message(id), group, text })
    write(store, transaction => {
      for (let i = 1; i <= 6; i++) transaction.insertMessage(large(i, 'a'))
      transaction.insertMessage({ ...large(7, 'a', 'short'), speech: { text: 'x'.repeat(1500) } })
      transaction.insertMessage(large(8, 'a', 'x'.repeat(1024)))
      for (let i = 9; i <= 11; i++) transaction.insertMessage(large(i, 'b'))
      expect(transaction.largeMessageBytes('a')).toBe(6 * 2000 + 5 + '{"text":""}'.length + 1500)
      transaction.insertMessage(large(12, 'a'))
      expect(transaction.largeMessageBytes('a')).toBe(7 * 2000 + 5 + '{"text":""}'.length + 1500)
      expect(transaction.largeMessageBytes('b')).toBe(6000)
    })
    const settled = {
      attempts: 1,
      nextAttemptAt: 0,
      partsSent: 1,
      partsTotal: 1,
      error: null,
      sentAt: 1,
      status: 'sent' as const,
    }
    store.settleMessages([1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(id => ({ id, ...settled })))
    const keep = { commands: 100, messages: 100, runs: 1, tasks: 1, usageDays: 1 }
    store.prune({ ...keep, messageBytes: 6000 })
    expect(store.messages({}).map(({ id }) => id)).toEqual([2, 6, 7, 8, 9, 10, 11, 12])
    write(store, transaction => {
      expect(transaction.largeMessageBytes('a')).toBe(3 * 2000 + 5 + '{"text":""}'.length + 1500)
      transaction.insertMessage(large(13, 'b'))
    })
    store.settleMessages([{ id: 13, ...settled }])
    store.prune({ ...keep, messageBytes: 6000 })
    expect(store.messages({}).map(({ id }) => id)).toEqual([2, 6, 7, 8, 10, 11, 12, 13])
  })

  test('cuts what a task was to do once it is over', () => {
    const store = open()
    const long = { prompt: 'p'.repeat(5000), script: 's'.repeat(5000) }
    write(store, transaction => {
      transaction.insertTask({ ...task('open'), ...long })
      transaction.insertTask({ ...task('over', 'cancelled'), ...long })
      transaction.insertTask({ ...task('short', 'cancelled'), prompt: 'p'.repeat(2000), script: 's' })
    })
    store.prune({ commands: 1, messages: 1, runs: 1, tasks: 10, usageDays: 1 })
    const kept = new Map(store.tasks({}).map(each => [each.id, each]))
    expect(kept.get('open')).toMatchObject(long)
    expect(kept.get('short')).toMatchObject({ prompt: 'p'.repeat(2000), script: 's' })
    expect(kept.get('over')).toMatchObject({ prompt: `${'p'.repeat(1000)} … (cut)`, script: null })
  })

  test('has nothing to do where there is less than may be kept', () => {
    const store = open()
    write(store, transaction => transaction.insertCommand(command(1)))
    store.prune({ commands: 1, messages: 1, runs: 1, tasks: 1, usageDays: 1 })
    expect(store.commands({ limit: 10 })).toHaveLength(1)
  })
})

test('a database that another program has locked, or that is none, is told in words', () => {
  const path = databasePath()
  openStore({ path, durability: 'process' }).close()
  const other = new DatabaseSync(path)
  other.exec('BEGIN EXCLUSIVE')
  const locked = () => openStore({ path, durability: 'process', waitMs: 10 })
  expect(locked).toThrow(StoreUnusable)
  expect(locked).toThrow(`The database ${path} is locked by another program.`)
  other.close()
  locked().close()

  const none = databasePath()
  writeFileSync(none, 'not a database at all, but long enough to be looked at. '.repeat(100))
  expect(() => openStore({ path: none, durability: 'process' })).toThrow(
    `The database ${none} is damaged (file is not a database). Restore a backup`,
  )
})

test('of large answers so many bytes are kept of each group, and the journal holds none of them', () => {
  const path = databasePath()
  const store = open(path)
  const large = { ok: true, result: { todos: 'x'.repeat(1_000_000) } } as const
  for (let seq = 1; seq <= 100; seq++) {
    write(store, transaction => transaction.insertCommand({ ...command(seq, `r${seq}`), outcome: large }))
  }
  write(store, transaction =>
    transaction.insertCommand({ ...command(101, 'r101'), group: 'b', outcome: large }),
  )
  // Whoever asks again soon has the same answer.
  for (const seq of [100, 101]) expect(store.command(seq)?.outcome).toEqual(large)
  expect(store.command(1)?.outcome).toMatchObject({ ok: false, error: { code: 'expired' } })
  const kept = Array.from({ length: 100 }, (_, i) => store.command(i + 1)?.outcome?.ok).filter(ok => ok)
  expect(kept).toHaveLength(67)
  write(store, transaction => {
    expect(transaction.answered('a', 'r100')?.outcome).toEqual(large)
    expect(transaction.openRequestSize('a')).toEqual({ count: 0, bytes: 0 })
  })
  expect(JSON.stringify(store.commands({ limit: 1000 })).length).toBeLessThan(100_000)
  expect(store.requests.unfinished()).toEqual([])
})

test('so it is for answers that followed later', () => {
  const store = open()
  const large = { ok: true, result: { page: 'x'.repeat(1_000_000) } } as const
  const input = { text: 'y'.repeat(1000) }
  for (let seq = 1; seq <= 70; seq++) {
    write(store, transaction => {
      const { reply } = command(seq, `r${seq}`)
      transaction.insertCommand({ ...command(seq, `r${seq}`), outcome: null })
      const about = { kind: 'service', tool: 'read', createdAt: 1, expiresAt: 2 } as const
      transaction.insertRequest({ ...about, seq, group: 'a', input, reply })
    })
    store.requests.answer([{ seq, outcome: large }], 3)
    store.requests.placed([seq])
  }
  expect(store.command(3)?.outcome).toMatchObject({ error: { code: 'expired' } })
  expect(store.command(4)?.outcome).toEqual(large)
  expect(store.command(70)?.outcome).toEqual(large)
})

test('a large question that is over goes with its message, and not only with the oldest of all', () => {
  const store = open()
  const about = { group: 'a', jid: 'a@chat', createdAt: 1, expiresAt: 2, closedAt: 2 } as const
  write(store, transaction => {
    transaction.insertMessage({ ...message(1), group: 'b' })
    for (let id = 2; id <= 5; id++) {
      const text = 'x'.repeat(50_000)
      transaction.insertMessage({ ...message(id), kind: 'question', text })
      const status = id === 2 ? 'open' : 'withdrawn'
      const questions = [{ question: 'x'.repeat(2000) }]
      transaction.insertQuestion({ ...about, seq: id, messageId: id, questions, answers: [null], status })
    }
  })
  const settled = {
    attempts: 1,
    nextAttemptAt: 0,
    partsSent: 1,
    partsTotal: 1,
    error: null,
    sentAt: 1,
    status: 'sent' as const,
  }
  store.settleMessages([1, 2, 3, 4, 5].map(id => ({ id, ...settled })))
  const keep = { commands: 100, messages: 100, runs: 1, tasks: 1, usageDays: 1 }
  store.prune({ ...keep, messageBytes: 65_536 })
  expect(store.messages({}).map(({ id }) => id)).toEqual([1, 5])
  const kept = [2, 3, 4, 5].filter(seq => store.questions.question(seq))
  // One that is open is limited by what may be open.
  expect(kept).toEqual([2, 5])
})

test('a long message that an earlier version had delivered in part goes on where it broke off', () => {
  const path = databasePath()
  const database = new DatabaseSync(path)
  migrate(
    database,
    readMigrations().filter(({ version }) => version < 17),
  )
  const old = database.prepare(
    `INSERT INTO messages (id, group_folder, jid, kind, text, status, attempts, next_attempt_at, error, created_at)
     VALUES (?, 'main', 'main@chat', 'text', 'long', 'pending', 1, 0, ?, 0)`,
  )
  old.run(1, '12 of 50 parts were delivered; then: the line is down')
  old.run(2, 'no parts of 3 of 4 were delivered; then: nothing')
  database.close()
  const rows = open(path).messages({})
  expect(rows.map(({ partsSent, partsTotal }) => [partsSent, partsTotal])).toEqual([
    [12, 50],
    [0, 0],
  ])
})
