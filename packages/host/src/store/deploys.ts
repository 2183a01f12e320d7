import { errorCodeSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { Connection } from './connection.ts'
import type { Row } from './rows.ts'

/**
 * building      its commands run; the process that asked for it still runs
 * restarting    handed over to the supervisor
 * done          the new revision runs
 * rolled_back   the new revision did not come up, and the one before runs
 * failed        nothing was restarted, or there was nothing to go back to
 */
const statuses = ['building', 'restarting', 'done', 'rolled_back', 'failed'] as const

const rowSchema = z.object({
  id: z.number(),
  /** of the agent's request; null: an operator asked */
  request: z.number().nullable(),
  group: z.string().nullable(),
  /** whether whoever asked is given a receipt */
  isAnswered: z.boolean(),
  from: z.string(),
  to: z.string(),
  /** that was checked out; null: a revision without one */
  branch: z.string().nullable(),
  rebuild: z.boolean(),
  resumePrompt: z.string().nullable(),
  /** of the agent's own; only where the host knows none */
  sessionId: z.string().nullable(),
  status: z.enum(statuses),
  code: errorCodeSchema.nullable(),
  error: z.string().nullable(),
  createdAt: z.number(),
  endedAt: z.number().nullable(),
})
export type DeployRow = z.infer<typeof rowSchema>
export type NewDeploy = Omit<DeployRow, 'id' | 'status' | 'code' | 'error' | 'endedAt'>
export type DeployEnd = Pick<DeployRow, 'code' | 'error'> & { status: 'done' | 'rolled_back' | 'failed' }

/** Inside one transaction. */
export interface DeployTransaction {
  /** false: it had ended before */
  endDeploy(id: number, end: DeployEnd, at: number): boolean
  /** lets the group's agent go on with this session of its own, if the host knows of none */
  adoptSession(folder: string, sessionId: string): void
}

export interface DeployStore {
  /** its number */
  add(deploy: NewDeploy): number
  restarting(id: number): void
  deploy(id: number): DeployRow | undefined
  byRequest(seq: number): DeployRow | undefined
  /** those that have not ended */
  open(): readonly DeployRow[]
  /** the newest, newest first */
  list(limit: number): readonly DeployRow[]
}

export interface DeployTable {
  store: DeployStore
  within: DeployTransaction
}

const kept = 1000

export function createDeployTable({ sql, atomically }: Connection): DeployTable {
  const one = (row: Row | undefined) => row && deployFromRow(row)
  return {
    store: {
      add: deploy =>
        atomically(() => {
          const { lastInsertRowid } = sql(
            `INSERT INTO deploys (request, group_folder, is_answered, from_revision, to_revision, branch, rebuild,
             resume_prompt, session_id, status, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'building', ?)`,
          ).run(
            deploy.request,
            deploy.group,
            Number(deploy.isAnswered),
            deploy.from,
            deploy.to,
            deploy.branch,
            Number(deploy.rebuild),
            deploy.resumePrompt,
            deploy.sessionId,
            deploy.createdAt,
          )
          const id = Number(lastInsertRowid)
          sql('DELETE FROM deploys WHERE id <= ? AND ended_at IS NOT NULL').run(id - kept)
          return id
        }),
      restarting: id =>
        atomically(
          () =>
            void sql("UPDATE deploys SET status = 'restarting' WHERE id = ? AND ended_at IS NULL").run(id),
        ),
      deploy: id => one(sql('SELECT * FROM deploys WHERE id = ?').get(id)),
      byRequest: seq => one(sql('SELECT * FROM deploys WHERE request = ?').get(seq)),
      open: () => sql('SELECT * FROM deploys WHERE ended_at IS NULL ORDER BY id').all().map(deployFromRow),
      list: limit => sql('SELECT * FROM deploys ORDER BY id DESC LIMIT ?').all(limit).map(deployFromRow),
    },
    within: {
      endDeploy: (id, { status, code, error }, at) =>
        sql(
          'UPDATE deploys SET status = ?, code = ?, error = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL',
        ).run(status, code, error, at, id).changes === 1,
      adoptSession: (folder, sessionId) =>
        void sql(
          'INSERT INTO sessions SELECT folder, ? FROM groups WHERE folder = ? ON CONFLICT (group_folder) DO NOTHING',
        ).run(sessionId, folder),
    },
  }
}

const deployFromRow = (row: Row): DeployRow =>
  rowSchema.parse({
    ...row,
    group: row.group_folder,
    isAnswered: row.is_answered === 1,
    from: row.from_revision,
    to: row.to_revision,
    rebuild: row.rebuild === 1,
    resumePrompt: row.resume_prompt,
    sessionId: row.session_id,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  })
