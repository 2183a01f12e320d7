import type { PluginHost } from '../../plugin-api/types.ts'
import { tableOf } from '../../store/table.ts'
import type { AuditEntry, OccurrenceRow } from '../../store/types.ts'
import { type JobRunRow, jobRunSchema } from './entity.ts'

export interface JobRunTable {
  /** keeps how a run ended, with its occurrence and an entry in the audit log, in one commit */
  endRun(
    run: JobRunRow,
    occurrence: Pick<OccurrenceRow, 'status' | 'result' | 'error'>,
    entry: AuditEntry,
  ): void
  run(occurrenceId: string): JobRunRow | undefined
}

const rows = tableOf('job_runs', jobRunSchema)

/** A trigger of the kernel's tables removes a row together with its occurrence. */
export function createJobRunTable({
  sql,
  transaction,
}: Pick<PluginHost, 'sql' | 'transaction'>): JobRunTable {
  return {
    endRun: (run, occurrence, entry) =>
      transaction(kernel => {
        sql(rows.replace).run(...rows.values(run))
        kernel.endOccurrence(run.occurrenceId, { ...occurrence, endedAt: run.endedAt })
        kernel.audit(entry)
      }),
    run: id => rows.maybe(sql('SELECT * FROM job_runs WHERE occurrence_id = ?').get(id)),
  }
}
