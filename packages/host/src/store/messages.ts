import { type Connection, type Stretch, stretchOf, where } from './connection.ts'
import {
  type Change,
  type MessageRow,
  messageSchema,
  type NewMessage,
  newMessageSchema,
} from './entities/message.ts'
import type { GroupTransaction } from './groups.ts'
import { largeMessageBytes } from './large-messages.ts'
import type { Meta } from './meta.ts'
import { tableOf } from './table.ts'
import type { Threads } from './threads.ts'

const messageTable = tableOf('messages', messageSchema)
const newTable = tableOf('messages', newMessageSchema)

/** Inside one transaction. */
export interface MessageTransaction {
  insertMessage(message: NewMessage): void
  /** what the messages of more than 1 KiB hold that are kept */
  largeMessageBytes(folder: string): number
}

export interface MessageStore {
  /** oldest first, fewer than `limit` where they hold so many `characters` together */
  messages(filter: {
    group?: string
    status?: MessageRow['status']
    after?: number
    limit?: number
    characters?: number
  }): readonly MessageRow[]
  /** the newest, oldest first, looked for among the last so many of everybody’s */
  latestMessages(filter: {
    group?: string
    jid?: string
    status?: MessageRow['status']
    within?: number
    limit: number
    characters: number
  }): Stretch<MessageRow>
  /** the group's message that shows it at work, and that nothing has replaced yet */
  openProgress(group: string): Pick<MessageRow, 'id' | 'jid' | 'thread'> | undefined
  /** the thread of the chat that what the group's agent says there goes to now; undefined: none */
  answerThread(group: string, jid: string): string | undefined
  /** messages that are not delivered yet */
  countPending(): number
  /** messages whose time has come: those that failed before, then new ones in their order */
  dueMessages(now: number, limit: number, characters?: number): readonly MessageRow[]
  settleMessages(changes: readonly Change[]): void
  lastMessageId(): number
}

/** They change what is there, or say nothing. */
const silent: ReadonlySet<string> = new Set<MessageRow['kind']>(['edit', 'progress'])

const bytes = 'octet_length(text) + coalesce(octet_length(speech), 0)'
const isLarge = `${bytes} > ${largeMessageBytes}`
const insert = `INSERT INTO messages (status, attempts, next_attempt_at, ${newTable.columns})
  VALUES ('pending', 0, ?, ${newTable.places})`

/** What the large messages of each group hold: only so much of them is kept. */
function createLargeMessages({ sql, onRollback }: Connection) {
  /** where somebody has asked; read anew after what may have changed it */
  const known = new Map<string, number>()
  /** groups whose large messages may be more than are kept; undefined: any may be, as after a start */
  let grown: Set<string> | undefined
  onRollback(() => known.clear())

  return {
    bytesOf(folder: string): number {
      const total =
        known.get(folder) ??
        Number(
          sql(`SELECT sum(${bytes}) AS bytes FROM messages WHERE group_folder = ? AND ${isLarge}`).get(folder)
            ?.bytes ?? 0,
        )
      known.set(folder, total)
      return total
    },
    added({ group, text, speech }: Pick<NewMessage, 'group' | 'text' | 'speech'>): void {
      const spoken = speech ? JSON.stringify(speech) : ''
      // A character has four bytes at most.
      if ((text.length + spoken.length) * 4 <= largeMessageBytes) return
      const size = Buffer.byteLength(text) + Buffer.byteLength(spoken)
      if (size <= largeMessageBytes) return
      grown?.add(group)
      const total = known.get(group)
      if (total !== undefined) known.set(group, total + size)
    },
    /** whether there are more */
    prune(limit: number, atATime: number): boolean {
      grown ??= new Set(
        sql(`SELECT DISTINCT group_folder FROM messages WHERE ${isLarge}`)
          .all()
          .map(row => String(row.group_folder)),
      )
      for (const group of grown) {
        const { changes } = sql(
          `DELETE FROM messages WHERE status <> 'pending' AND id IN (SELECT id FROM
           (SELECT id, sum(${bytes}) OVER (ORDER BY id DESC) AS total FROM messages
            WHERE group_folder = ? AND ${isLarge}) WHERE total > ? LIMIT ?)`,
        ).run(group, limit, atATime)
        if (Number(changes) > 0) known.delete(group)
        if (changes === atATime) return true
        grown.delete(group)
      }
      return false
    },
  }
}

export function createMessageTable(
  connection: Connection,
  { meta, setMeta }: Meta,
  threads: Pick<Threads, 'of'>,
  { noteActivity }: Pick<GroupTransaction, 'noteActivity'>,
) {
  const { sql, atomically } = connection
  const large = createLargeMessages(connection)
  /** messages up to this one have been attempted at least once */
  let attempted = Number(meta('attempted') ?? 0)
  const count = (condition: string, ...values: number[]) =>
    Number(
      sql(`SELECT count(*) AS count FROM messages WHERE status = 'pending' AND ${condition}`).get(...values)
        ?.count ?? 0,
    )
  const lastMessageId = () => Number(sql('SELECT max(id) AS id FROM messages').get()?.id ?? 0)

  const within: MessageTransaction = {
    largeMessageBytes: large.bytesOf,
    insertMessage(message) {
      // What answers something goes where that was said.
      const thread =
        message.replyTo === undefined
          ? (message.thread ?? threads.of(message.group, message.jid))
          : message.thread
      sql(insert).run(
        message.createdAt,
        ...newTable.values(thread === undefined ? message : { ...message, thread }),
      )
      large.added(message)
      if (!silent.has(message.kind)) noteActivity(message.jid, message.createdAt)
    },
  }
  const store: MessageStore = {
    messages({ group, status, after = 0, limit = -1, characters = Number.POSITIVE_INFINITY }) {
      const { text, values } = where({ 'id > ?': after, 'group_folder = ?': group, 'status = ?': status })
      const rows = sql(`SELECT * FROM messages ${text} ORDER BY id LIMIT ?`).iterate(...values, limit)
      return stretchOf(rows.map(messageTable.from), Number.POSITIVE_INFINITY, characters).rows
    },
    openProgress(group) {
      const row = sql(
        `SELECT id, jid, thread FROM messages AS m WHERE kind = 'progress' AND group_folder = ?
         AND NOT EXISTS (SELECT 1 FROM messages WHERE replaces = m.id) ORDER BY id DESC LIMIT 1`,
      ).get(group)
      if (!row) return undefined
      const { thread } = row
      return { id: Number(row.id), jid: String(row.jid), ...(thread !== null && { thread: String(thread) }) }
    },
    answerThread: threads.of,
    latestMessages({ group, jid, status, within = Number.MAX_SAFE_INTEGER, limit, characters }) {
      const { text, values } = where({
        'id > ?': lastMessageId() - within,
        'group_folder = ?': group,
        'jid = ?': jid,
        'status = ?': status,
      })
      const rows = sql(`SELECT * FROM messages ${text} ORDER BY id DESC`).iterate(...values)
      const { rows: latest, more } = stretchOf(rows.map(messageTable.from), limit, characters)
      return { rows: latest.reverse(), more }
    },
    countPending: () => count('attempts > 0') + count('attempts = 0 AND id > ?', attempted),
    dueMessages(now, limit, characters = Number.POSITIVE_INFINITY) {
      function* due() {
        yield* sql(
          "SELECT * FROM messages WHERE status = 'pending' AND attempts > 0 AND next_attempt_at <= ? ORDER BY next_attempt_at LIMIT ?",
        ).iterate(now, limit)
        yield* sql("SELECT * FROM messages WHERE id > ? AND status = 'pending' ORDER BY id LIMIT ?").iterate(
          attempted,
          limit,
        )
      }
      return stretchOf(due().map(messageTable.from), limit, characters).rows
    },
    settleMessages(changes) {
      const last = Math.max(attempted, ...changes.map(change => change.id))
      atomically(() => {
        for (const { id, ...change } of changes) {
          const { text, values } = messageTable.set(change)
          sql(`UPDATE messages SET ${text} WHERE id = ?`).run(...values, id)
        }
        if (last > attempted) setMeta('attempted', String(last))
      })
      attempted = last
    },
    lastMessageId,
  }
  /** Forgets the oldest beyond `keep`, and large ones of groups beyond so many bytes; whether there are more. */
  const prune = (keep: number, largeBytes: number | undefined, atATime: number): boolean => {
    const { changes } = sql(
      "DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE id <= ? AND status <> 'pending' LIMIT ?)",
    ).run(lastMessageId() - keep, atATime)
    const isMore = largeBytes !== undefined && large.prune(largeBytes, atATime)
    return isMore || changes === atATime
  }
  return { store, within, prune }
}
