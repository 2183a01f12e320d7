import { DatabaseSync } from 'node:sqlite'
import { isStorageFailure, StoreFailure, unusable } from '../base/storage-failure.ts'
import { createAgentTables } from './agents.ts'
import { createApprovalTable } from './approvals.ts'
import { createAuditTable } from './audit.ts'
import { preparedOnce, sizeIn, stretchOf } from './connection.ts'
import { nameContext } from './contexts.ts'
import { createCopying } from './copy.ts'
import { createDeployTable } from './deploys.ts'
import { createFileTable } from './files.ts'
import { createJobTable } from './job-runs.ts'
import { largeMessageBytes } from './large-messages.ts'
import { migrate } from './migrate.ts'
import { createPeriodicTable } from './periodic.ts'
import { createQuestionTable } from './questions.ts'
import { createRefusalTable } from './refusals.ts'
import { createRegistry } from './registry.ts'
import { createRequestTable, journalledBytes } from './requests.ts'
import { commandFromRow, groupFromRow, groupValues, messageFromRow, taskFromRow, taskValues } from './rows.ts'
import { createTaintTable } from './taints.ts'
import { createTodoTable } from './todos.ts'
import type { CommandRow, Store, Transaction } from './types.ts'
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

const taskBytes = 'octet_length(prompt) + coalesce(octet_length(script), 0) + coalesce(octet_length(job), 0)'
const messageBytes = 'octet_length(text) + coalesce(octet_length(speech), 0)'

/** What others than the group itself are shown of a task's texts. */
const briefCharacters = 200
const brief = (column: string) =>
  `CASE WHEN octet_length(${column}) > ${briefCharacters} THEN substr(${column}, 1, ${briefCharacters})
   || ' … (cut; ' || octet_length(${column}) || ' bytes)' ELSE ${column} END AS ${column}`
const briefColumns = `id, group_folder, jid, created_by, ${brief('prompt')}, ${brief('script')}, model, schedule_type,
  schedule_value, timezone, context_mode, status, next_run, last_run, ${brief('last_result')}, created_at, job`

/** Throws `StoreUnusable` where it is locked, full or damaged. */
function openDatabase({ path, durability, prepare = true, waitMs = 5000 }: StoreOptions): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: waitMs })
    database.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'};
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -4000;
    `)
    migrate(database)
    if (prepare) growLog(database)
    return database
  } catch (error) {
    database?.close()
    throw unusable(path, error) ?? error
  }
}

export function openStore(options: StoreOptions): Store {
  const { path } = options
  const database = openDatabase(options)
  const copying = createCopying(database, path, checkpointPages)
  const sql = (text: string) => database.prepare(text)
  const statements = {
    begin: sql('BEGIN IMMEDIATE'),
    commit: sql('COMMIT'),
    rollback: sql('ROLLBACK'),

    groups: sql('SELECT * FROM groups ORDER BY added_at, rowid'),
    insertGroup: sql('INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    agentUser: sql('SELECT uid FROM agent_users WHERE folder = ?'),
    agentFolders: sql('SELECT folder FROM agent_users ORDER BY folder'),
    insertAgentUser: sql(
      "INSERT INTO agent_users SELECT ?, 1 + coalesce(max(uid), (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_agent_user')) FROM agent_users",
    ),
    updateGroup: sql('UPDATE groups SET jid = ?, name = ? WHERE folder = ?'),
    deleteGroup: sql('DELETE FROM groups WHERE folder = ?'),

    task: sql('SELECT * FROM tasks WHERE id = ?'),
    tasks: sql('SELECT * FROM tasks ORDER BY created_at, rowid'),
    tasksOf: sql('SELECT * FROM tasks WHERE group_folder = ? ORDER BY created_at, rowid'),
    openTasks: sql("SELECT * FROM tasks WHERE status IN ('active', 'paused') ORDER BY created_at, rowid"),
    openTasksOf: sql(
      "SELECT * FROM tasks WHERE status IN ('active', 'paused') AND group_folder = ? ORDER BY created_at, rowid",
    ),
    openTaskSize: sql(
      `SELECT count(*) AS count, sum(${taskBytes}) AS bytes FROM tasks
       WHERE status IN ('active', 'paused') AND group_folder = ?`,
    ),
    openTasksByGroup: sql(
      "SELECT group_folder, count(*) AS count FROM tasks WHERE status IN ('active', 'paused') GROUP BY group_folder",
    ),
    briefTasks: sql(
      `SELECT ${briefColumns} FROM tasks WHERE rowid IN (SELECT rowid FROM tasks
       WHERE status IN ('active', 'paused') AND group_folder = ? ORDER BY rowid DESC LIMIT ?) ORDER BY rowid DESC`,
    ),
    largeMessageBytes: sql(
      `SELECT sum(${messageBytes}) AS bytes FROM messages WHERE group_folder = ? AND ${messageBytes} > ${largeMessageBytes}`,
    ),
    largeMessageGroups: sql(
      `SELECT DISTINCT group_folder FROM messages WHERE ${messageBytes} > ${largeMessageBytes}`,
    ),
    pruneMessageBytes: sql(
      `DELETE FROM messages WHERE status <> 'pending' AND id IN (SELECT id FROM
       (SELECT id, sum(${messageBytes}) OVER (ORDER BY id DESC) AS total FROM messages
        WHERE group_folder = ? AND ${messageBytes} > ${largeMessageBytes}) WHERE total > ? LIMIT ${pruneRows})`,
    ),
    cutTasks: sql(
      `UPDATE tasks SET prompt = substr(prompt, 1, 1000) || ' … (cut)', script = NULL WHERE rowid IN
       (SELECT rowid FROM tasks WHERE status NOT IN ('active', 'paused')
        AND octet_length(prompt) + coalesce(octet_length(script), 0) > 4096
        AND NOT EXISTS (SELECT 1 FROM occurrences WHERE task_id = tasks.id AND status IN ('claimed', 'running'))
        LIMIT ${pruneRows})`,
    ),
    countTasks: sql(
      "SELECT count(*) FILTER (WHERE status = 'active') AS active, count(*) FILTER (WHERE status = 'paused') AS paused FROM tasks WHERE status IN ('active', 'paused')",
    ),
    insertTask: sql(`INSERT INTO tasks (group_folder, jid, created_by, prompt, script, model, schedule_type,
      schedule_value, timezone, context_mode, status, next_run, last_run, last_result, created_at, job, id)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    updateTask:
      sql(`UPDATE tasks SET group_folder = ?, jid = ?, created_by = ?, prompt = ?, script = ?, model = ?,
      schedule_type = ?, schedule_value = ?, timezone = ?, context_mode = ?, status = ?, next_run = ?, last_run = ?,
      last_result = ?, created_at = ?, job = ? WHERE id = ?`),

    pruneTasks: sql(
      `DELETE FROM tasks WHERE rowid IN (SELECT rowid FROM tasks WHERE status NOT IN ('active', 'paused')
       ORDER BY coalesce(last_run, created_at) DESC, rowid DESC LIMIT ${pruneRows} OFFSET ?)
       AND NOT EXISTS (SELECT 1 FROM occurrences WHERE task_id = tasks.id AND status IN ('claimed', 'running'))`,
    ),

    handled: sql('SELECT * FROM commands WHERE seq = ?'),
    answered: sql('SELECT * FROM commands WHERE group_folder = ? AND request_id = ?'),
    insertCommand: sql('INSERT INTO commands VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    forgetRequest: sql('UPDATE commands SET request_id = NULL WHERE seq = ?'),
    lastSeq: sql('SELECT max(seq) AS seq FROM commands'),
    pruneCommands: sql(
      `DELETE FROM commands WHERE seq IN (SELECT seq FROM commands WHERE seq <= ? LIMIT ${pruneRows})`,
    ),

    insertMessage: sql(`INSERT INTO messages (id, group_folder, jid, kind, text, sender, speech, message_id,
      status, attempts, next_attempt_at, created_at, attachments)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ?)`),
    freshMessages: sql("SELECT * FROM messages WHERE id > ? AND status = 'pending' ORDER BY id LIMIT ?"),
    retriedMessages: sql(
      "SELECT * FROM messages WHERE status = 'pending' AND attempts > 0 AND next_attempt_at <= ? ORDER BY next_attempt_at LIMIT ?",
    ),
    countRetried: sql("SELECT count(*) AS count FROM messages WHERE status = 'pending' AND attempts > 0"),
    countFresh: sql(
      "SELECT count(*) AS count FROM messages WHERE id > ? AND status = 'pending' AND attempts = 0",
    ),
    settleMessage: sql(
      `UPDATE messages SET status = ?, attempts = ?, next_attempt_at = ?, parts_sent = ?, parts_total = ?, error = ?,
       sent_at = ? WHERE id = ?`,
    ),
    lastMessageId: sql('SELECT max(id) AS id FROM messages'),
    pruneMessages: sql(
      `DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE id <= ? AND status <> 'pending' LIMIT ${pruneRows})`,
    ),

    meta: sql('SELECT value FROM meta WHERE key = ?'),
    setMeta: sql('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value'),
  }

  const registry = createRegistry()
  const loadRegistry = () => registry.replace(statements.groups.iterate().map(groupFromRow))
  loadRegistry()

  /** messages up to this one have been attempted at least once */
  let attempted = Number(statements.meta.get('attempted')?.value ?? 0)
  let taskCounter = Number(statements.meta.get('task_counter')?.value ?? 0)

  /** what the large messages of a group hold, where somebody has asked; read anew after what may have changed it */
  const largeMessages = new Map<string, number>()
  /** groups whose large messages may be more than are kept; undefined: any may be, as after a start */
  let grown: Set<string> | undefined

  const lastSeq = () => Number(statements.lastSeq.get()?.seq ?? 0)
  const pruneMessageBytes = (limit: number): number => {
    const groups = grown ?? new Set(statements.largeMessageGroups.all().map(row => String(row.group_folder)))
    grown = groups
    for (const group of groups) {
      const changes = Number(statements.pruneMessageBytes.run(group, limit).changes)
      if (changes > 0) largeMessages.delete(group)
      if (changes === pruneRows) return changes
      groups.delete(group)
    }
    return 0
  }
  const lastMessageId = () => Number(statements.lastMessageId.get()?.id ?? 0)

  const atomically = <T>(work: () => T): T => {
    try {
      statements.begin.run()
      const result = work()
      statements.commit.run()
      options.commits?.succeeded()
      return result
    } catch (error) {
      // A failed COMMIT may or may not have ended the transaction; what matters is that none is left open.
      const isFailing = isStorageFailure(error)
      const failure = isFailing ? new StoreFailure(error.message, { cause: error }) : error
      if (isFailing) options.commits?.failed('a commit', error)
      try {
        audit.forgetHead()
        largeMessages.clear()
        if (database.isTransaction) statements.rollback.run()
        loadRegistry()
      } catch (cause) {
        throw new StoreFailure('the database could not be set back', { cause })
      }
      throw failure
    }
  }

  const connection = { sql: preparedOnce(database), atomically }
  const requests = createRequestTable(connection)
  const refusals = createRefusalTable(connection)
  const questions = createQuestionTable(connection, message => agents.within.receive(message))
  const todos = createTodoTable(connection)
  const audit = createAuditTable(connection)
  const taints = createTaintTable(connection)
  const approvals = createApprovalTable(connection, message => agents.within.receive(message))
  const periodic = createPeriodicTable(connection)
  const jobs = createJobTable(connection, audit.within.audit)
  const deploys = createDeployTable(connection)
  const files = createFileTable(connection)
  /** Large answers are not in the journal itself. */
  const withAnswer = (row: CommandRow): CommandRow =>
    row.outcome ? row : { ...row, outcome: requests.outcomeOf(row.seq) }

  const transaction: Transaction = {
    ...requests.within,
    ...refusals.within,
    ...questions.within,
    ...todos.within,
    ...audit.within,
    ...taints.within,
    ...approvals.within,
    ...periodic.within,
    ...jobs.within,
    ...deploys.within,
    ...files.within,
    forgetSession: folder => agents.within.forgetSession(folder),
    receive: message => agents.within.receive(message),
    finishOccurrence: (id, result, at) => agents.within.finishOccurrence(id, result, at),
    group: registry.byFolder,
    isFolderTaken: registry.isTaken,
    groupByJid: registry.byJid,
    groups: registry.all,
    insertGroup(group) {
      statements.insertGroup.run(...groupValues(group))
      registry.add(group)
    },
    updateGroup(group) {
      statements.updateGroup.run(group.jid, group.name, group.folder)
      registry.remove(group.folder)
      registry.add(group)
    },
    deleteGroup(folder) {
      statements.deleteGroup.run(folder)
      agents.forgetGroup(folder)
      requests.forgetGroup(folder)
      refusals.forgetGroup(folder)
      todos.forgetGroup(folder)
      // Its files stay, and so does their taint. Its name goes.
      taints.store.clear(folder, nameContext)
      approvals.forgetGroup(folder)
      periodic.forgetGroup(folder)
      registry.remove(folder)
    },

    task(id) {
      const row = statements.task.get(id)
      return row && taskFromRow(row)
    },
    openTasks: folder =>
      (folder === undefined ? statements.openTasks.all() : statements.openTasksOf.all(folder)).map(
        taskFromRow,
      ),
    openTaskSize: folder => sizeIn(statements.openTaskSize.get(folder)),
    largeMessageBytes(folder) {
      const known = largeMessages.get(folder) ?? Number(statements.largeMessageBytes.get(folder)?.bytes ?? 0)
      largeMessages.set(folder, known)
      return known
    },
    newTaskId() {
      do taskCounter++
      while (statements.task.get(String(taskCounter)) !== undefined)
      statements.setMeta.run('task_counter', String(taskCounter))
      return String(taskCounter)
    },
    insertTask: task => void statements.insertTask.run(...taskValues(task)),
    updateTask: task => void statements.updateTask.run(...taskValues(task)),

    answered(group, requestId) {
      const row = statements.answered.get(group, requestId)
      return row && withAnswer(commandFromRow(row))
    },
    handled(seq) {
      const row = statements.handled.get(seq)
      return row && withAnswer(commandFromRow(row))
    },
    insertCommand(row) {
      const outcome = JSON.stringify(row.outcome)
      const isLarge = outcome.length > journalledBytes
      statements.insertCommand.run(
        row.seq,
        row.group,
        row.directory,
        row.file,
        row.inode,
        row.mtimeUs,
        row.dialect,
        row.type,
        row.requestId,
        row.reply && JSON.stringify(row.reply),
        isLarge ? 'null' : outcome,
        row.receivedAt,
        row.tookUs,
      )
      if (isLarge) requests.keepLarge(row, outcome)
    },
    insertMessage(message) {
      const { group, text } = message
      const speech = message.speech && JSON.stringify(message.speech)
      statements.insertMessage.run(
        message.id,
        group,
        message.jid,
        message.kind,
        text,
        message.sender,
        speech,
        message.messageId,
        message.createdAt,
        message.createdAt,
        message.attachments ? JSON.stringify(message.attachments) : null,
      )
      // A character has four bytes at most.
      if ((text.length + (speech?.length ?? 0)) * 4 <= largeMessageBytes) return
      const bytes = Buffer.byteLength(text) + Buffer.byteLength(speech ?? '')
      if (bytes <= largeMessageBytes) return
      grown?.add(group)
      const known = largeMessages.get(group)
      if (known !== undefined) largeMessages.set(group, known + bytes)
    },
  }

  const agents = createAgentTables(connection, message => transaction.insertMessage(message))

  return {
    transaction: work => atomically(() => work(transaction)),

    group: registry.byFolder,
    groups: registry.all,
    tasks: ({ group, open }) => {
      if (open) return transaction.openTasks(group)
      return (group === undefined ? statements.tasks.all() : statements.tasksOf.all(group)).map(taskFromRow)
    },
    countOpenTasks: () =>
      statements.openTasksByGroup
        .all()
        .map(row => ({ group: String(row.group_folder), count: Number(row.count) })),
    briefTasks: (folder, limit) => statements.briefTasks.all(folder, limit).map(taskFromRow),
    countTasks() {
      const row = statements.countTasks.get()
      return { active: Number(row?.active ?? 0), paused: Number(row?.paused ?? 0) }
    },
    messages({ group, status, after = 0, limit = -1, characters = Number.POSITIVE_INFINITY }) {
      const rows = sql(
        `SELECT * FROM messages WHERE id > :after AND (:group IS NULL OR group_folder = :group)
         AND (:status IS NULL OR status = :status) ORDER BY id LIMIT :limit`,
      ).iterate({ after, group: group ?? null, status: status ?? null, limit })
      return stretchOf(rows.map(messageFromRow), Number.POSITIVE_INFINITY, characters).rows
    },
    latestMessages({ group, jid, status, within = Number.MAX_SAFE_INTEGER, limit, characters }) {
      const rows = sql(
        `SELECT * FROM messages WHERE id > :after AND (:group IS NULL OR group_folder = :group)
         AND (:jid IS NULL OR jid = :jid) AND (:status IS NULL OR status = :status) ORDER BY id DESC`,
      ).iterate({
        after: lastMessageId() - within,
        group: group ?? null,
        jid: jid ?? null,
        status: status ?? null,
      })
      const { rows: latest, more } = stretchOf(rows.map(messageFromRow), limit, characters)
      return { rows: latest.reverse(), more }
    },
    commands({ group, type, ok, after = 0, before = Number.MAX_SAFE_INTEGER, limit }) {
      const outcome = ok === 'open' ? "outcome = 'null'" : "(:ok IS NULL OR outcome ->> 'ok' = :ok)"
      return sql(
        `SELECT * FROM (SELECT * FROM commands WHERE seq > :after AND seq < :before
         AND (:group IS NULL OR group_folder = :group) AND (:type IS NULL OR type = :type) AND ${outcome}
         ORDER BY seq DESC LIMIT :limit) ORDER BY seq`,
      )
        .all({
          after,
          before,
          group: group ?? null,
          type: type ?? null,
          ...(ok === 'open' ? {} : { ok: ok === undefined ? null : Number(ok) }),
          limit,
        })
        .map(commandFromRow)
    },
    command: seq => transaction.handled(seq),
    forgetRequest: seq => void statements.forgetRequest.run(seq),

    countPending: () =>
      Number(statements.countRetried.get()?.count ?? 0) +
      Number(statements.countFresh.get(attempted)?.count ?? 0),
    dueMessages(now, limit, characters = Number.POSITIVE_INFINITY) {
      function* due() {
        yield* statements.retriedMessages.iterate(now, limit)
        yield* statements.freshMessages.iterate(attempted, limit)
      }
      return stretchOf(due().map(messageFromRow), limit, characters).rows
    },
    settleMessages(changes) {
      const last = Math.max(attempted, ...changes.map(change => change.id))
      atomically(() => {
        for (const { status, attempts, nextAttemptAt, partsSent, partsTotal, error, sentAt, id } of changes) {
          statements.settleMessage.run(
            status,
            attempts,
            nextAttemptAt,
            partsSent,
            partsTotal,
            error,
            sentAt,
            id,
          )
        }
        if (last > attempted) statements.setMeta.run('attempted', String(last))
      })
      attempted = last
    },

    agents: agents.store,
    refusals,
    requests: requests.store,
    taints: taints.store,
    approvals: approvals.store,
    questions: questions.store,
    files: files.store,
    webSessions: createWebSessionTable(connection),
    audit: audit.store,
    jobs: jobs.store,
    deploys: deploys.store,
    todos: todos.within.todos,
    noteTodo: (said, todo, word) =>
      atomically(() => {
        const id = agents.within.receive(said)
        if (id === undefined) return undefined
        if (todo) transaction.insertTodo(said.group, todo)
        transaction.insertMessage(word)
        return id
      }),

    lastMessageId,
    lastSeq,
    prune(limits) {
      // Numbers are given in order and hardly any is left out, so the newest one tells where the oldest kept one is.
      const commands = statements.pruneCommands.run(lastSeq() - limits.commands).changes
      const messages = statements.pruneMessages.run(lastMessageId() - limits.messages).changes
      const tasks = statements.pruneTasks.run(limits.tasks).changes
      const cut = statements.cutTasks.run().changes
      const bytes = limits.messageBytes === undefined ? 0 : pruneMessageBytes(limits.messageBytes)
      const more = agents.prune(limits, pruneRows)
      questions.prune()
      approvals.prune()
      return more || [commands, messages, tasks, cut, bytes].some(changes => Number(changes) === pruneRows)
    },
    meta(key) {
      const value = statements.meta.get(key)?.value
      return typeof value === 'string' ? value : undefined
    },
    setMeta: (key, value) => void statements.setMeta.run(key, value),
    agentUser(folder) {
      const known = () => statements.agentUser.get(folder)?.uid
      if (known() === undefined) statements.insertAgentUser.run(folder)
      return Number(known())
    },
    agentFolders: () => statements.agentFolders.all().map(({ folder }) => String(folder)),
    copyTo: copying.copyTo,
    close() {
      database.close()
      copying.close()
    },
  }
}

/**
 * A sync of a file that keeps its size costs two thirds of one that grows (measured.md), so the write-ahead log
 * is brought to its working size once, before anything waits for it.
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
