import type { DatabaseSync } from 'node:sqlite'
import { openSqlite, rollBack } from '../base/sqlite.ts'
import { isStorageFailure, StoreFailure, unusable } from '../base/storage-failure.ts'
import { createAgentTables } from './agents.ts'
import { createApprovalTable } from './approvals.ts'
import { createAuditTable } from './audit.ts'
import { createChatTables } from './chats.ts'
import { type Connection, preparedOnce } from './connection.ts'
import { nameContext, titleContext } from './contexts.ts'
import { createCopying } from './copy.ts'
import { createFileTable } from './files.ts'
import { createGroupTable } from './groups.ts'
import { createJournal } from './journal.ts'
import { createMessageTable } from './messages.ts'
import { createMeta } from './meta.ts'
import { migrate } from './migrate.ts'
import { openPluginTables } from './plugin-tables.ts'
import { createQuestionTable } from './questions.ts'
import { createRefusalTable } from './refusals.ts'
import { createRequestTable } from './requests.ts'
import { createTaintTable } from './taints.ts'
import { createTaskTable } from './tasks.ts'
import { createThreads } from './threads.ts'
import { createTodoTable } from './todos.ts'
import type { Store, Transaction } from './types.ts'
import { createWebSessionTable } from './web-sessions.ts'

export type Durability = 'full' | 'process'

export interface StoreOptions {
  path: string
  /** `full` survives power loss (one sync of the disk per commit), `process` survives SIGKILL */
  durability: Durability
  /** false: only for a moment, not worth getting ready for many commits */
  prepare?: boolean
  /** how long another program may have it locked */
  waitMs?: number
  /** hears how commits go */
  commits?: { succeeded(): void; failed(what: string, error: unknown): void } | undefined
}

/** Large enough that a busy hour rarely waits for a checkpoint, small enough to be written back in a blink. */
const checkpointPages = 4000
/** so many rows at a time are forgotten, so that nobody waits for it */
const pruneRows = 2000

/** Throws `StoreUnusable` where it is locked, full or damaged. */
function openDatabase({ path, durability, prepare = true, waitMs = 5000 }: StoreOptions): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = openSqlite(path, { waitMs })
    database.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'};
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -4000;
    `)
    migrate(database)
    if (prepare && durability === 'full') growLog(database)
    return database
  } catch (error) {
    database?.close()
    throw unusable(path, error) ?? error
  }
}

export function openStore(options: StoreOptions): Store {
  const database = openDatabase(options)
  const copying = createCopying(database, options.path, checkpointPages)
  const connection = connect(database, options.commits)
  const { atomically } = connection
  const meta = createMeta(connection)
  const groups = createGroupTable(connection)
  const tasks = createTaskTable(connection, meta)
  const threads = createThreads()
  const messages = createMessageTable(connection, meta, threads, groups.within)
  const requests = createRequestTable(connection)
  const journal = createJournal(connection, requests)
  const agents = createAgentTables(
    connection,
    messages.within.insertMessage,
    tasks.within.task,
    threads,
    groups.within,
  )
  const refusals = createRefusalTable(connection)
  const questions = createQuestionTable(connection, agents.within.receive)
  const todos = createTodoTable(connection)
  const audit = createAuditTable(connection)
  const taints = createTaintTable(connection)
  const approvals = createApprovalTable(connection, agents.within.receive)
  const files = createFileTable(connection)
  const chats = createChatTables(connection)

  /** what else goes with a group, in the same transaction */
  const forgetting: ((folder: string) => void)[] = []

  const transaction: Transaction = {
    ...groups.within,
    ...tasks.within,
    ...journal.within,
    ...messages.within,
    ...requests.within,
    ...agents.within,
    ...refusals.within,
    ...questions.within,
    ...todos.within,
    ...audit.within,
    ...taints.within,
    ...approvals.within,
    ...files.within,
    ...chats.within,
    deleteGroup(folder) {
      for (const table of [groups, agents, requests, refusals, todos, approvals]) {
        table.forgetGroup(folder)
      }
      for (const forget of forgetting) forget(folder)
      // Its files stay, and so does their taint. Its name goes.
      for (const context of [nameContext, titleContext]) taints.store.clear(folder, context)
    },
  }

  return {
    transaction: work => atomically(() => work(transaction)),
    ...meta,
    ...groups.store,
    ...tasks.store,
    ...journal.store,
    ...messages.store,
    agents: agents.store,
    refusals,
    requests: requests.store,
    taints: taints.store,
    approvals: approvals.store,
    questions: questions.store,
    files: files.store,
    chats: chats.store,
    webSessions: createWebSessionTable(connection),
    audit: audit.store,
    todos: todos.within.todos,
    noteTodo: (said, todo, word) =>
      atomically(() => {
        const id = transaction.receive(said)
        if (id === undefined) return undefined
        if (todo) transaction.insertTodo(said.group, todo)
        transaction.insertMessage(word)
        return id
      }),
    pluginTables: owner => openPluginTables(database, owner),
    whenGroupGoes: forget => void forgetting.push(forget),
    prune(limits) {
      const more = [
        journal.prune(limits.commands, pruneRows),
        messages.prune(limits.messages, limits.messageBytes, pruneRows),
        tasks.prune(limits.tasks, pruneRows),
        agents.prune(limits, pruneRows),
      ]
      questions.prune()
      approvals.prune()
      return more.includes(true)
    },
    copyTo: copying.copyTo,
    close() {
      database.close()
      copying.close()
    },
  }
}

function connect(database: DatabaseSync, commits: StoreOptions['commits']): Connection {
  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')
  const rollback = database.prepare('ROLLBACK')
  const numbers = numberCommits(database)
  const forgetting: (() => void)[] = []

  /** whether there was nothing to take back, as the commit was made in spite of the error */
  const takeBack = (): boolean => {
    try {
      rollBack(() => rollback.run())
      for (const forget of forgetting) forget()
      return numbers.isStored()
    } catch (cause) {
      throw new StoreFailure('the database could not be set back', { cause })
    }
  }
  return {
    sql: preparedOnce(database),
    atomically(work) {
      let done: { result: ReturnType<typeof work> } | undefined
      try {
        begin.run()
        const result = work()
        numbers.next()
        done = { result }
        commit.run()
      } catch (error) {
        const isFailing = isStorageFailure(error)
        if (isFailing) commits?.failed('a commit', error)
        const isMade = takeBack()
        if (!isMade || !done) throw isFailing ? new StoreFailure(error.message, { cause: error }) : error
      }
      // The work is durable. An error from here on must not reach the caller, who would do the same work once more.
      try {
        commits?.succeeded()
      } catch (error) {
        commits?.failed('noting a commit', error)
      }
      return done.result
    },
    onRollback: forget => void forgetting.push(forget),
  }
}

/**
 * Numbers the commits that change something, in the database itself. So it is known whether a commit was made, also where
 * COMMIT reports an error for one that is durable: its work must not be done once more.
 */
function numberCommits(database: DatabaseSync): { next(): void; isStored(): boolean } {
  const note = database.prepare(
    `INSERT INTO meta SELECT 'commits', ? WHERE total_changes() > ?
     ON CONFLICT (key) DO UPDATE SET value = excluded.value RETURNING total_changes() AS changes`,
  )
  const stored = database.prepare("SELECT value FROM meta WHERE key = 'commits'")
  const read = () => Number(stored.get()?.value ?? 0)
  let last = read()
  let changes = 0
  return {
    next() {
      const noted = note.get(String(last + 1), changes)
      if (!noted) return
      last++
      // Noting it is a change, too.
      changes = Number(noted.changes) + 1
    },
    isStored: () => read() === last,
  }
}

/**
 * A sync of a file that keeps its size costs two thirds of one that grows (measured.md), so the write-ahead log
 * is brought to its working size once, before anything waits for it. Without syncs there is nothing to gain.
 */
function growLog(database: DatabaseSync): void {
  database.exec(`
    BEGIN;
    WITH RECURSIVE piece (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM piece WHERE n < ${checkpointPages / 16})
      INSERT OR REPLACE INTO meta SELECT 'grow ' || n, zeroblob(32768) FROM piece;
    DELETE FROM meta WHERE key LIKE 'grow %';
    COMMIT;
  `)
  database.prepare('PRAGMA wal_checkpoint(RESTART)').all()
}
