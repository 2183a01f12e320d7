import { type Connection, where } from './connection.ts'
import { type RunRow, type RunStatus, runSchema, type StepRow, stepSchema } from './entities/run.ts'
import { tableOf } from './table.ts'

const runTable = tableOf('runs', runSchema)
const stepTable = tableOf('steps', stepSchema)

/** What agents did. Each call is durable, whole or not at all. */
export interface RunStore {
  updateRun(
    id: string,
    change: Partial<
      Pick<RunRow, 'sessionId' | 'sandbox' | 'image' | 'status' | 'endedAt' | 'result' | 'error'>
    >,
  ): void
  run(id: string): RunRow | undefined
  /** the newest, in the order in which they began */
  runs(filter: { group?: string; status?: RunStatus; taskId?: string; limit?: number }): readonly RunRow[]
  /** those of runs that are forgotten are not kept */
  addSteps(steps: readonly StepRow[]): void
  steps(runId: string): readonly StepRow[]
  /** the agent's own session, to go on with */
  session(group: string): string | undefined
  setSession(group: string, sessionId: string | null): void
}

export interface RunTables {
  store: RunStore
  /** inside a transaction that is open already */
  insertRun(run: RunRow): void
  /** inside a transaction that is open already; false: it is no longer running */
  noteTurn(runId: string, sessionId: string | null, result: string | null): boolean
  putSession(group: string, sessionId: string): void
  forgetGroup(folder: string): void
  /** some of the oldest beyond this number, and transcripts of a group beyond so many bytes; how many rows */
  prune(keep: number, atATime: number, bytes?: number): number
}

/** of one group's transcripts and results; the oldest beyond it go */
const transcriptBytes = 268_435_456
const forgotten = 'The rest of this run was forgotten: its group has had too much written down since.'

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

  const store: RunStore = {
    updateRun(id, change) {
      const { text, values } = runTable.set(change)
      if (text === '') return
      atomically(() => void sql(`UPDATE runs SET ${text} WHERE id = ?`).run(...values, id))
    },
    run: id => runTable.maybe(sql('SELECT * FROM runs WHERE id = ?').get(id)),
    runs({ group, status, taskId, limit = -1 }) {
      const { text, values } = where({
        'group_folder = ?': group,
        'task_id = ?': taskId,
        // Spelled out, as SQLite uses a partial index only where a query says literally what the index says.
        [`status = '${status}'`]: status && true,
      })
      return sql(`SELECT * FROM (SELECT * FROM runs ${text} ORDER BY seq DESC LIMIT ?) ORDER BY seq`)
        .all(...values, limit)
        .map(runTable.from)
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
      sql(
        `SELECT runs.id AS run_id, at, steps.kind, name, text FROM runs JOIN steps ON run = seq
         WHERE runs.id = ? ORDER BY steps.id`,
      )
        .all(runId)
        .map(stepTable.from),

    session(group) {
      const id = sql('SELECT session_id FROM sessions WHERE group_folder = ?').get(group)?.session_id
      return typeof id === 'string' ? id : undefined
    },
    setSession: (group, sessionId) =>
      atomically(() => (sessionId === null ? dropSession(group) : putSession(group, sessionId))),
  }
  return {
    store,
    insertRun: run => void sql(runTable.insert).run(...runTable.values(run)),
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
