import type { Task } from '@hatchway/protocol'
import { type Connection, where } from './connection.ts'
import { type OccurrenceRow, type OccurrenceStatus, occurrenceSchema, type TaskMove } from './entities/run.ts'
import { tableOf } from './table.ts'
import { taskTable } from './tasks.ts'

const occurrenceTable = tableOf('occurrences', occurrenceSchema)

/** What the scheduler keeps. Each call is durable, whole or not at all. */
export interface OccurrenceStore {
  /** active tasks whose time has come, the longest due first */
  dueTasks(now: number, limit: number): readonly Task[]
  /** when the next active task is due */
  nextDue(): number | undefined
  /**
   * Claims one occurrence and moves its task on in the same commit. undefined if the task is no longer active or no
   * longer due at that time, or if that occurrence was claimed before: then it is only moved on.
   */
  claimOccurrence(occurrence: OccurrenceRow, then: TaskMove): OccurrenceRow | undefined
  /** one that somebody asked for; the task's next run stays what it is. false: it is there already */
  insertOccurrence(occurrence: OccurrenceRow): boolean
  /** whether the task was active and due at that time */
  moveTask(id: string, dueAt: number, then: TaskMove): boolean
  updateOccurrence(
    id: string,
    change: Partial<Pick<OccurrenceRow, 'status' | 'runId' | 'startedAt' | 'endedAt' | 'result' | 'error'>>,
  ): void
  /** also notes the result with the task, and when it ran if it did; one that has ended stays as it is */
  endOccurrence(
    id: string,
    end: Pick<OccurrenceRow, 'status' | 'result' | 'error'> & { endedAt: number },
  ): void
  occurrence(id: string): OccurrenceRow | undefined
  /** the newest, in the order in which they were claimed */
  occurrences(filter: {
    taskId?: string
    group?: string
    status?: OccurrenceStatus
    limit?: number
  }): readonly OccurrenceRow[]
}

export interface OccurrenceTable {
  store: OccurrenceStore
  /** inside a transaction that is open already; whether it had not ended */
  end(...args: Parameters<OccurrenceStore['endOccurrence']>): boolean
  /** some of the oldest beyond this number; how many */
  prune(keep: number, atATime: number): number
}

/** Results go into the snapshots that agents read; the whole of it is with the run. */
const noteLength = 500
const cut = (text: string): string => (text.length > noteLength ? `${text.slice(0, noteLength - 1)}…` : text)

const open = "status IN ('claimed', 'running')"
export function createOccurrenceTable({ sql, atomically }: Connection): OccurrenceTable {
  const insert = (row: OccurrenceRow): boolean =>
    sql(`${occurrenceTable.insert} ON CONFLICT (id) DO NOTHING`).run(...occurrenceTable.values(row))
      .changes === 1

  const move = (taskId: string, dueAt: number, { status, nextRun, note }: TaskMove): boolean =>
    sql(
      `UPDATE tasks SET status = ?, next_run = ?, last_result = coalesce(?, last_result)
       WHERE id = ? AND status = 'active' AND next_run = ?`,
    ).run(status, nextRun, note === undefined ? null : cut(note), taskId, dueAt).changes === 1

  const end: OccurrenceTable['end'] = (id, { status, result, error, endedAt }) => {
    const row = sql(
      `UPDATE occurrences SET status = ?, result = ?, error = ?, ended_at = ? WHERE id = ? AND ${open}
       RETURNING task_id, group_folder, started_at`,
    ).get(status, result, error, endedAt, id)
    if (!row) return false
    const note = status === 'failed' ? `Error: ${error ?? 'unknown'}` : (result ?? error)
    sql('UPDATE tasks SET last_run = coalesce(?, last_run), last_result = ? WHERE id = ?').run(
      row.started_at ?? null,
      note === null ? null : cut(note),
      row.task_id ?? null,
    )
    // Others see the result, and it was made of what the group had read.
    sql("DELETE FROM taints WHERE group_folder = ? AND context = 'result:' || ?").run(
      row.group_folder ?? null,
      row.task_id ?? null,
    )
    sql(
      `INSERT INTO taints SELECT group_folder, 'result:' || ?, corrupted_at, corrupted_by, secret_at, secret_by
       FROM taints WHERE group_folder = ? AND context = 'session'`,
    ).run(row.task_id ?? null, row.group_folder ?? null)
    return true
  }

  const store: OccurrenceStore = {
    dueTasks: (now, limit) =>
      sql("SELECT * FROM tasks WHERE status = 'active' AND next_run <= ? ORDER BY next_run, rowid LIMIT ?")
        .all(now, limit)
        .map(taskTable.from),
    nextDue() {
      const due = sql("SELECT min(next_run) AS due FROM tasks WHERE status = 'active'").get()?.due
      return typeof due === 'number' ? due : undefined
    },
    claimOccurrence: (occurrence, then) =>
      atomically(() =>
        move(occurrence.taskId, occurrence.dueAt, then) && insert(occurrence) ? occurrence : undefined,
      ),
    insertOccurrence: occurrence => atomically(() => insert(occurrence)),
    moveTask: (id, dueAt, then) => atomically(() => move(id, dueAt, then)),
    updateOccurrence(id, change) {
      const { text, values } = occurrenceTable.set(change)
      if (text === '') return
      atomically(() => void sql(`UPDATE occurrences SET ${text} WHERE id = ?`).run(...values, id))
    },
    endOccurrence: (id, ending) => atomically(() => void end(id, ending)),
    occurrence: id => occurrenceTable.maybe(sql('SELECT * FROM occurrences WHERE id = ?').get(id)),
    occurrences({ taskId, group, status, limit = -1 }) {
      const { text, values } = where({
        'task_id = ?': taskId,
        'group_folder = ?': group,
        'status = ?': status,
        // Lets SQLite use the index of the open ones.
        [open]: status === 'claimed' || status === 'running' || undefined,
      })
      return sql(`SELECT * FROM (SELECT * FROM occurrences ${text} ORDER BY seq DESC LIMIT ?) ORDER BY seq`)
        .all(...values, limit)
        .map(occurrenceTable.from)
    },
  }
  return {
    store,
    end,
    prune: (keep, atATime) =>
      Number(
        sql(
          `DELETE FROM occurrences WHERE seq IN (SELECT seq FROM occurrences
           WHERE seq <= (SELECT max(seq) FROM occurrences) - ? AND NOT (${open}) LIMIT ?)`,
        ).run(keep, atATime).changes,
      ),
  }
}
