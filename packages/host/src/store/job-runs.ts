import type { Task } from '@hatchway/protocol'
import { z } from 'zod'
import type { OccurrenceRow } from './agent-types.ts'
import { createOccurrenceTable } from './agents/occurrences.ts'
import type { AuditEntry } from './audit-types.ts'
import type { Connection } from './connection.ts'
import { type Row, taskFromRow } from './rows.ts'

/** How one occurrence of a job ended. */
export interface JobRunRow {
  occurrenceId: string
  taskId: string
  /** null: a signal ended it, or it never began */
  exitCode: number | null
  signal: string | null
  timedOut: boolean
  /** its beginning and its end, where it is too long */
  output: string
  /** bytes of the output that are not kept */
  dropped: number
  endedAt: number
}

export interface JobStore {
  /** keeps how a run ended, with its occurrence and an entry in the audit log, in one commit */
  endRun(
    run: JobRunRow,
    occurrence: Pick<OccurrenceRow, 'status' | 'result' | 'error'>,
    entry: AuditEntry,
  ): void
  run(occurrenceId: string): JobRunRow | undefined
  /** tasks that are jobs, oldest first */
  jobs(filter: { open: boolean }): readonly Task[]
}

/** Inside one transaction. */
export interface JobTransaction {
  /** the job of this name that is active or paused */
  openJob(name: string): Task | undefined
}

export interface JobTable {
  store: JobStore
  within: JobTransaction
}

const open = "job IS NOT NULL AND status IN ('active', 'paused')"

export function createJobTable(connection: Connection, audit: (entry: AuditEntry) => number): JobTable {
  const { sql, atomically } = connection
  const { end } = createOccurrenceTable(connection)
  return {
    store: {
      endRun: (run, occurrence, entry) =>
        atomically(() => {
          sql('INSERT OR REPLACE INTO job_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)').run(
            run.occurrenceId,
            run.taskId,
            run.exitCode,
            run.signal,
            run.timedOut ? 1 : 0,
            run.output,
            run.dropped,
            run.endedAt,
          )
          end(run.occurrenceId, { ...occurrence, endedAt: run.endedAt })
          audit(entry)
        }),
      run(occurrenceId) {
        const row = sql('SELECT * FROM job_runs WHERE occurrence_id = ?').get(occurrenceId)
        return row && runFromRow(row)
      },
      jobs: filter =>
        sql(`SELECT * FROM tasks WHERE ${filter.open ? open : 'job IS NOT NULL'} ORDER BY created_at, rowid`)
          .all()
          .map(taskFromRow),
    },
    within: {
      openJob(name) {
        const row = sql(`SELECT * FROM tasks WHERE ${open} AND job ->> 'name' = ?`).get(name)
        return row && taskFromRow(row)
      },
    },
  }
}

const runSchema = z.object({
  occurrenceId: z.string(),
  taskId: z.string(),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  output: z.string(),
  dropped: z.number(),
  endedAt: z.number(),
})

const runFromRow = (row: Row): JobRunRow =>
  runSchema.parse({
    ...row,
    occurrenceId: row.occurrence_id,
    taskId: row.task_id,
    exitCode: row.exit_code,
    timedOut: row.timed_out === 1,
    endedAt: row.ended_at,
  })
