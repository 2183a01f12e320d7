import { type Connection, type Stretch, stretchOf, where } from './connection.ts'
import {
  type IncomingRow,
  type IncomingStatus,
  incomingSchema,
  type NewIncoming,
} from './entities/message.ts'
import type { GroupTransaction } from './groups.ts'
import { tableOf } from './table.ts'
import type { Threads } from './threads.ts'

const incomingTable = tableOf('incoming', incomingSchema)

/** What people said. Each call is durable, whole or not at all. */
export interface IncomingStore {
  /** undefined: this message of this chat is known already */
  receive(message: NewIncoming): number | undefined
  /** whether this message of this chat came before */
  isKnown(message: Pick<IncomingRow, 'channel' | 'jid' | 'externalId'>): boolean
  /** what somebody said in a chat, by the channel's own id */
  byExternalId(channel: string, jid: string, externalId: string): IncomingRow | undefined
  /** other words for what nobody has read yet; whether that was still so */
  rewrite(id: number, text: string): boolean
  /** oldest first */
  incoming(filter: {
    group?: string
    status?: IncomingStatus
    runId?: string
    after?: number
    limit?: number
  }): readonly IncomingRow[]
  /** the newest of a chat, oldest first */
  latestIncoming(filter: {
    group: string
    jid: string
    limit: number
    characters: number
  }): Stretch<IncomingRow>
  /** folders of groups for which something waits, the longest waiting first */
  groupsWaiting(): readonly string[]
  /** notes that a run has these, and with them everything of the group that was `context` before them */
  give(ids: readonly number[], runId: string): void
  /** of what the run was given; the context before them counts as used with them */
  use(ids: readonly number[], runId: string): void
  /** whatever the run was given and did not use waits again, or is context again */
  giveBack(runId: string): void
}

export interface IncomingTable {
  store: IncomingStore
  /** inside a transaction that is open already */
  insert: IncomingStore['receive']
  heard(id: number): IncomingRow | undefined
  markGiven(ids: readonly number[], runId: string): void
  markUsed: IncomingStore['use']
  /** what was said beside the agent counts as used */
  forgetContext(folder: string): void
  forgetGroup(folder: string): void
  /** some of the oldest beyond this number; how many */
  prune(keep: number, atATime: number): number
}

export function createIncomingTable(
  { sql, atomically }: Connection,
  threads: Pick<Threads, 'enter'>,
  { noteActivity }: Pick<GroupTransaction, 'noteActivity'>,
): IncomingTable {
  const insert = (message: NewIncoming): number | undefined => {
    const { changes, lastInsertRowid } = sql(
      `INSERT INTO incoming (calls, ${incomingTable.columns}) VALUES (?, ${incomingTable.places})
       ON CONFLICT (channel, jid, external_id) WHERE external_id IS NOT NULL DO NOTHING`,
    ).run(message.status === 'context' ? 0 : 1, ...incomingTable.values({ ...message, runId: null }))
    if (changes === 0) return undefined
    const id = Number(lastInsertRowid)
    // The host's own notes are nobody's words.
    if (message.channel !== 'host') noteActivity(message.jid, message.createdAt)
    for (const file of message.attachments ?? []) {
      sql("UPDATE files SET message = ? WHERE id = ? AND direction = 'in'").run(id, file.id)
    }
    return id
  }
  const heard = (id: number) => incomingTable.maybe(sql('SELECT * FROM incoming WHERE id = ?').get(id))
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
    const last = heard(ids.at(-1) ?? 0)
    if (last) threads.enter(last.group, last.jid, last.thread)
  }
  const markUsed = (ids: readonly number[], runId: string) => {
    if (ids.length === 0) return
    const use = sql("UPDATE incoming SET status = 'used' WHERE id = ? AND run_id = ? AND status = 'given'")
    for (const id of ids) use.run(id, runId)
    sql(
      "UPDATE incoming SET status = 'used' WHERE run_id = ? AND status = 'given' AND calls = 0 AND id < ?",
    ).run(runId, Math.max(...ids))
  }

  const store: IncomingStore = {
    receive: message => atomically(() => insert(message)),
    isKnown: ({ channel, jid, externalId }) =>
      externalId !== null &&
      sql('SELECT 1 FROM incoming WHERE channel = ? AND jid = ? AND external_id = ?').get(
        channel,
        jid,
        externalId,
      ) !== undefined,
    byExternalId: (channel, jid, externalId) =>
      incomingTable.maybe(
        sql('SELECT * FROM incoming WHERE channel = ? AND jid = ? AND external_id = ?').get(
          channel,
          jid,
          externalId,
        ),
      ),
    rewrite: (id, text) =>
      atomically(
        () =>
          sql("UPDATE incoming SET text = ? WHERE id = ? AND status IN ('waiting', 'context')").run(text, id)
            .changes > 0,
      ),
    incoming({ group, status, runId, after = 0, limit = -1 }) {
      const { text, values } = where({
        'group_folder = ?': group,
        'run_id = ?': runId,
        'id > ?': after,
        // Spelled out, as SQLite uses a partial index only where a query says literally what the index says.
        [`status = '${status}'`]: status && true,
      })
      return sql(`SELECT * FROM incoming ${text} ORDER BY id LIMIT ?`)
        .all(...values, limit)
        .map(incomingTable.from)
    },
    latestIncoming({ group, jid, limit, characters }) {
      const rows = sql('SELECT * FROM incoming WHERE group_folder = ? AND jid = ? ORDER BY id DESC').iterate(
        group,
        jid,
      )
      const { rows: latest, more } = stretchOf(rows.map(incomingTable.from), limit, characters)
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
  }
  return {
    store,
    insert,
    heard,
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
