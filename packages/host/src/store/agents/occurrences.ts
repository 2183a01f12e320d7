import { occurrenceFromRow } from '../agent-rows.ts'
import type { AgentStore, OccurrenceRow, OccurrenceStatus, TaskMove } from '../agent-types.ts'
import { assignments, type Connection, where } from '../connection.ts'
import { taskFromRow } from '../rows.ts'

type Part = Pick<
  AgentStore,
  | 'task'
  | 'dueTasks'
  | 'nextDue'
  | 'claimOccurrence'
  | 'insertOccurrence'
  | 'moveTask'
  | 'updateOccurrence'
  | 'endOccurrence'
  | 'occurrence'
  | 'occurrences'
>

export interface OccurrenceTable extends Part {
  /** inside a transaction that is open already; whether it had not ended */
  end: (...args: Parameters<AgentStore['endOccurrence']>) => boolean
  /** some of the oldest beyond this number; how many */
  prune(keep: number, atATime: number): number
}

/** Results go into the snapshots that agents read; the whole of it is with the run. */
const noteLength = 500
const cut = (text: string): string => (text.length > noteLength ? `${text.slice(0, noteLength - 1)}…` : text)

const open = "status IN ('claimed', 'running')"
const statusIs: Readonly<Record<OccurrenceStatus, string>> = {
  claimed: `status = 'claimed' AND ${open}`,
  running: `status = 'running' AND ${open}`,
  done: "status = 'done'",
  failed: "status = 'failed'",
  skipped: "status = 'skipped'",
}

const changeable = {
  status: 'status',
  runId: 'run_id',
  startedAt: 'started_at',
  endedAt: 'ended_at',
  result: 'result',
  error: 'error',
} as const

export function createOccurrenceTable({ sql, atomically }: Connection): OccurrenceTable {
  const insert = (row: OccurrenceRow): boolean =>
    sql(
      `INSERT INTO occurrences (id, task_id, group_folder, due_at, manual, status, run_id, claimed_at, started_at,
       ended_at, result, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    ).run(
      row.id,
      row.taskId,
      row.group,
      row.dueAt,
      row.manual ? 1 : 0,
      row.status,
      row.runId,
      row.claimedAt,
      row.startedAt,
      row.endedAt,
      row.result,
      row.error,
    ).changes === 1

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

  return {
    end,
    task(id) {
      const row = sql('SELECT * FROM tasks WHERE id = ?').get(id)
      return row && taskFromRow(row)
    },
    dueTasks: (now, limit) =>
      sql("SELECT * FROM tasks WHERE status = 'active' AND next_run <= ? ORDER BY next_run, rowid LIMIT ?")
        .all(now, limit)
        .map(taskFromRow),
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
      const { text, values } = assignments(changeable, change)
      if (values.length === 0) return
      atomically(() => void sql(`UPDATE occurrences SET ${text} WHERE id = ?`).run(...values, id))
    },
    endOccurrence: (id, ending) => atomically(() => void end(id, ending)),
    occurrence(id) {
      const row = sql('SELECT * FROM occurrences WHERE id = ?').get(id)
      return row && occurrenceFromRow(row)
    },
    occurrences({ taskId, group, status, limit = -1 }) {
      const { text, values } = where({ 'task_id = ?': taskId, 'group_folder = ?': group, 'seq > ?': 0 })
      const condition = status === undefined ? '' : ` AND ${statusIs[status]}`
      return sql(
        `SELECT * FROM (SELECT * FROM occurrences ${text}${condition} ORDER BY seq DESC LIMIT ?) ORDER BY seq`,
      )
        .all(...values, limit)
        .map(occurrenceFromRow)
    },

    prune: (keep, atATime) =>
      Number(
        sql(
          `DELETE FROM occurrences WHERE seq IN (SELECT seq FROM occurrences
           WHERE seq <= (SELECT max(seq) FROM occurrences) - ? AND NOT (${open}) LIMIT ?)`,
        ).run(keep, atATime).changes,
      ),
  }
}
