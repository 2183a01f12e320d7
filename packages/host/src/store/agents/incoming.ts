import { incomingFromRow } from '../agent-rows.ts'
import type { AgentStore, IncomingStatus, NewIncoming } from '../agent-types.ts'
import { type Connection, stretchOf, where } from '../connection.ts'

type Part = Pick<
  AgentStore,
  'receive' | 'isKnown' | 'incoming' | 'latestIncoming' | 'groupsWaiting' | 'give' | 'use' | 'giveBack'
>

export interface IncomingTable extends Part {
  /** inside a transaction that is open already */
  insert: AgentStore['receive']
  markGiven(ids: readonly number[], runId: string): void
  markUsed(ids: readonly number[], runId: string): void
  /** what was said beside the agent counts as used */
  forgetContext(folder: string): void
  forgetGroup(folder: string): void
  /** some of the oldest beyond this number; how many */
  prune(keep: number, atATime: number): number
}

/** Spelled out, as SQLite uses a partial index only where a query says literally what the index says. */
const statusIs: Readonly<Record<IncomingStatus, string>> = {
  waiting: "status = 'waiting'",
  given: "status = 'given'",
  used: "status = 'used'",
  context: "status = 'context'",
}

export function createIncomingTable({ sql, atomically }: Connection): IncomingTable {
  const insert = (message: NewIncoming): number | undefined => {
    const { changes, lastInsertRowid } = sql(
      `INSERT INTO incoming (group_folder, jid, channel, external_id, sender, sender_name, text, calls, status,
       created_at, attachments) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (channel, jid, external_id) WHERE external_id IS NOT NULL DO NOTHING`,
    ).run(
      message.group,
      message.jid,
      message.channel,
      message.externalId,
      message.sender,
      message.senderName,
      message.text,
      message.status === 'context' ? 0 : 1,
      message.status,
      message.createdAt,
      message.attachments ? JSON.stringify(message.attachments) : null,
    )
    if (changes === 0) return undefined
    const id = Number(lastInsertRowid)
    for (const file of message.attachments ?? []) {
      sql("UPDATE files SET message = ? WHERE id = ? AND direction = 'in'").run(id, file.id)
    }
    return id
  }
  const markGiven = (ids: readonly number[], runId: string) => {
    const give = sql(
      "UPDATE incoming SET status = 'given', run_id = ? WHERE id = ? AND status IN ('waiting', 'context')",
    )
    const giveContext = sql(
      `UPDATE incoming SET status = 'given', run_id = ? WHERE status = 'context'
       AND group_folder = (SELECT group_folder FROM incoming WHERE id = ?) AND id < ?`,
    )
    for (const id of ids) {
      give.run(runId, id)
      giveContext.run(runId, id, id)
    }
  }
  const markUsed = (ids: readonly number[], runId: string) => {
    if (ids.length === 0) return
    const use = sql("UPDATE incoming SET status = 'used' WHERE id = ? AND run_id = ? AND status = 'given'")
    for (const id of ids) use.run(id, runId)
    sql(
      "UPDATE incoming SET status = 'used' WHERE run_id = ? AND status = 'given' AND calls = 0 AND id < ?",
    ).run(runId, Math.max(...ids))
  }

  return {
    receive: message => atomically(() => insert(message)),
    isKnown: ({ channel, jid, externalId }) =>
      externalId !== null &&
      sql('SELECT 1 FROM incoming WHERE channel = ? AND jid = ? AND external_id = ?').get(
        channel,
        jid,
        externalId,
      ) !== undefined,
    incoming({ group, status, runId, after = 0, limit = -1 }) {
      const { text, values } = where({ 'group_folder = ?': group, 'run_id = ?': runId, 'id > ?': after })
      const condition = status === undefined ? '' : ` AND ${statusIs[status]}`
      return sql(`SELECT * FROM incoming ${text}${condition} ORDER BY id LIMIT ?`)
        .all(...values, limit)
        .map(incomingFromRow)
    },
    latestIncoming({ group, jid, limit, characters }) {
      const rows = sql('SELECT * FROM incoming WHERE group_folder = ? AND jid = ? ORDER BY id DESC').iterate(
        group,
        jid,
      )
      const { rows: latest, more } = stretchOf(rows.map(incomingFromRow), limit, characters)
      return { rows: latest.reverse(), more }
    },
    groupsWaiting: () =>
      sql("SELECT group_folder FROM incoming WHERE status = 'waiting' GROUP BY group_folder ORDER BY min(id)")
        .all()
        .map(row => String(row.group_folder)),
    give: (ids, runId) => atomically(() => markGiven(ids, runId)),
    use: (ids, runId) => atomically(() => markUsed(ids, runId)),
    giveBack: runId =>
      atomically(
        () =>
          void sql(
            `UPDATE incoming SET status = CASE calls WHEN 1 THEN 'waiting' ELSE 'context' END
             WHERE run_id = ? AND status = 'given'`,
          ).run(runId),
      ),

    insert,
    markGiven,
    markUsed,
    forgetContext: folder =>
      void sql(
        "UPDATE incoming SET status = 'used' WHERE group_folder = ? AND calls = 0 AND status IN ('context', 'given')",
      ).run(folder),
    forgetGroup: folder =>
      void sql("DELETE FROM incoming WHERE group_folder = ? AND status <> 'used'").run(folder),
    prune: (keep, atATime) =>
      Number(
        sql(
          `DELETE FROM incoming WHERE id IN (SELECT id FROM incoming
           WHERE id <= (SELECT max(id) FROM incoming) - ? AND status IN ('used', 'context') LIMIT ?)`,
        ).run(keep, atATime).changes,
      ),
  }
}
