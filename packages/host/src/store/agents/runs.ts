import { runFromRow, stepFromRow } from '../agent-rows.ts'
import type { AgentStore, RunRow, RunStatus } from '../agent-types.ts'
import { assignments, type Connection, where } from '../connection.ts'

type Part = Pick<AgentStore, 'updateRun' | 'run' | 'runs' | 'addSteps' | 'steps' | 'session' | 'setSession'>

export interface RunTables extends Part {
  /** inside a transaction that is open already */
  insertRun(run: RunRow): void
  /** inside a transaction that is open already; false: it is no longer running */
  noteTurn(runId: string, sessionId: string | null, result: string | null): boolean
  putSession(group: string, sessionId: string): void
  forgetGroup(folder: string): void
  /** some of the oldest beyond this number, and transcripts of a group beyond so many bytes; how many rows */
  prune(keep: number, atATime: number, bytes?: number): number
}

const statusIs: Readonly<Record<RunStatus, string>> = {
  running: "status = 'running'",
  done: "status = 'done'",
  failed: "status = 'failed'",
  stopped: "status = 'stopped'",
}

/** of one group's transcripts and results; the oldest beyond it go */
const transcriptBytes = 268_435_456
const forgotten = 'The rest of this run was forgotten: its group has had too much written down since.'

const changeable = {
  sessionId: 'session_id',
  sandbox: 'sandbox',
  image: 'image',
  status: 'status',
  endedAt: 'ended_at',
  result: 'result',
  error: 'error',
} as const

export function createRunTables({ sql, atomically }: Connection): RunTables {
  /** A group that was unregistered while its agent worked must not leave a session for the next one of its name. */
  const putSession = (group: string, sessionId: string) =>
    void sql(
      `INSERT INTO sessions SELECT folder, ? FROM groups WHERE folder = ?
       ON CONFLICT (group_folder) DO UPDATE SET session_id = excluded.session_id`,
    ).run(sessionId, group)
  const dropSession = (group: string) => void sql('DELETE FROM sessions WHERE group_folder = ?').run(group)

  /** Of one run, the oldest of a group that has too much; false: there is none. */
  const forgetTranscript = (limit: number): boolean => {
    const run = sql(
      `SELECT seq, id, occurrence_id FROM (SELECT seq, id, occurrence_id, status, bytes,
       sum(bytes) OVER (PARTITION BY group_folder ORDER BY seq DESC) AS total FROM
       (SELECT *, transcript_bytes + coalesce(octet_length(result), 0) AS bytes FROM runs))
       WHERE total > ? AND bytes > 5000 AND status <> 'running' ORDER BY seq LIMIT 1`,
    ).get(limit)
    if (!run) return false
    const { seq = null, occurrence_id = null } = run
    atomically(() => {
      sql('DELETE FROM steps WHERE run = ?').run(seq)
      sql(
        `INSERT INTO steps (run, at, kind, name, text) SELECT seq, ended_at, 'notice', NULL, ? FROM runs
         WHERE seq = ? AND ended_at IS NOT NULL`,
      ).run(forgotten, seq)
      sql('UPDATE runs SET transcript_bytes = 0, result = substr(result, 1, 1000) WHERE seq = ?').run(seq)
      sql('UPDATE occurrences SET result = substr(result, 1, 1000) WHERE id = ?').run(occurrence_id)
    })
    return true
  }

  return {
    insertRun: run =>
      void sql(
        `INSERT INTO runs (id, group_folder, kind, task_id, occurrence_id, sandbox, image, driver, session_id, status,
         started_at, ended_at, result, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        run.id,
        run.group,
        run.kind,
        run.taskId,
        run.occurrenceId,
        run.sandbox,
        run.image,
        run.driver,
        run.sessionId,
        run.status,
        run.startedAt,
        run.endedAt,
        run.result,
        run.error,
      ),
    updateRun(id, change) {
      const { text, values } = assignments(changeable, change)
      if (values.length === 0) return
      atomically(() => void sql(`UPDATE runs SET ${text} WHERE id = ?`).run(...values, id))
    },
    run(id) {
      const row = sql('SELECT * FROM runs WHERE id = ?').get(id)
      return row && runFromRow(row)
    },
    runs({ group, status, taskId, limit = -1 }) {
      const { text, values } = where({ 'group_folder = ?': group, 'task_id = ?': taskId, 'seq > ?': 0 })
      const condition = status === undefined ? '' : ` AND ${statusIs[status]}`
      return sql(
        `SELECT * FROM (SELECT * FROM runs ${text}${condition} ORDER BY seq DESC LIMIT ?) ORDER BY seq`,
      )
        .all(...values, limit)
        .map(runFromRow)
    },
    addSteps(steps) {
      if (steps.length === 0) return
      atomically(() => {
        const insert = sql(
          'INSERT INTO steps (run, at, kind, name, text) SELECT seq, ?, ?, ?, ? FROM runs WHERE id = ?',
        )
        const count = sql('UPDATE runs SET transcript_bytes = transcript_bytes + ? WHERE id = ?')
        const grown = new Map<string, number>()
        for (const { runId, at, kind, name, text } of steps) {
          insert.run(at, kind, name, text, runId)
          grown.set(runId, (grown.get(runId) ?? 0) + Buffer.byteLength(text))
        }
        for (const [runId, bytes] of grown) count.run(bytes, runId)
      })
    },
    steps: runId =>
      sql('SELECT * FROM steps WHERE run = (SELECT seq FROM runs WHERE id = ?) ORDER BY id')
        .all(runId)
        .map(row => stepFromRow(row, runId)),

    session(group) {
      const id = sql('SELECT session_id FROM sessions WHERE group_folder = ?').get(group)?.session_id
      return typeof id === 'string' ? id : undefined
    },
    setSession: (group, sessionId) =>
      atomically(() => (sessionId === null ? dropSession(group) : putSession(group, sessionId))),
    putSession,
    noteTurn: (runId, sessionId, result) =>
      sql(
        `UPDATE runs SET session_id = coalesce(?, session_id), result = coalesce(?, result)
         WHERE id = ? AND status = 'running'`,
      ).run(sessionId, result, runId).changes === 1,

    forgetGroup: dropSession,
    prune(keep, atATime, bytes = transcriptBytes) {
      if (forgetTranscript(bytes)) return atATime
      const old = `SELECT seq FROM runs WHERE seq <= (SELECT max(seq) FROM runs) - ? AND status <> 'running'`
      const steps = sql(
        `DELETE FROM steps WHERE id IN (SELECT id FROM steps WHERE run IN (${old}) LIMIT ?)`,
      ).run(keep, atATime).changes
      if (Number(steps) === atATime) return atATime
      return Number(
        sql(`DELETE FROM runs WHERE seq IN (${old} LIMIT ?)
             AND NOT EXISTS (SELECT 1 FROM steps WHERE run = runs.seq)`).run(keep, atATime).changes,
      )
    },
  }
}
