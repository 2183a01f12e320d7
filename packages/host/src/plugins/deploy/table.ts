import type { PluginHost } from '../../plugin-api/types.ts'
import { tableOf } from '../../store/table.ts'
import { type DeployEnd, type DeployRow, deployRowSchema, type NewDeploy } from './entity.ts'

export interface DeployTable {
  /** its number */
  add(deploy: NewDeploy): number
  restarting(id: number): void
  /** inside a transaction. false: it had ended before */
  end(id: number, end: DeployEnd, at: number): boolean
  deploy(id: number): DeployRow | undefined
  byRequest(seq: number): DeployRow | undefined
  /** those that have not ended */
  open(): readonly DeployRow[]
  /** the newest, newest first */
  list(limit: number): readonly DeployRow[]
}

const rows = tableOf('deploys', deployRowSchema, { from: 'from_revision', to: 'to_revision' })
const kept = 1000

export function createDeployTable({
  sql,
  transaction,
}: Pick<PluginHost, 'sql' | 'transaction'>): DeployTable {
  return {
    add: deploy =>
      transaction(() => {
        const { lastInsertRowid } = sql(rows.insert).run(
          ...rows.values({ ...deploy, status: 'building', code: null, error: null, endedAt: null }),
        )
        const id = Number(lastInsertRowid)
        sql('DELETE FROM deploys WHERE id <= ? AND ended_at IS NOT NULL').run(id - kept)
        return id
      }),
    restarting: id =>
      transaction(
        () => void sql("UPDATE deploys SET status = 'restarting' WHERE id = ? AND ended_at IS NULL").run(id),
      ),
    end: (id, { status, code, error }, at) =>
      sql(
        'UPDATE deploys SET status = ?, code = ?, error = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL',
      ).run(status, code, error, at, id).changes === 1,
    deploy: id => rows.maybe(sql('SELECT * FROM deploys WHERE id = ?').get(id)),
    byRequest: seq => rows.maybe(sql('SELECT * FROM deploys WHERE request = ?').get(seq)),
    open: () => sql('SELECT * FROM deploys WHERE ended_at IS NULL ORDER BY id').all().map(rows.from),
    list: limit => sql('SELECT * FROM deploys ORDER BY id DESC LIMIT ?').all(limit).map(rows.from),
  }
}
