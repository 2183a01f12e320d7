import type { Connection } from './connection.ts'
import { type KnownChatRow, knownChatSchema, type PairingRow, pairingSchema } from './entities/chat.ts'
import { tableOf } from './table.ts'

const knownTable = tableOf('known_chats', knownChatSchema)
const pairingTable = tableOf('pairings', pairingSchema)

/** Inside one transaction. */
export interface ChatTransaction {
  /** whether channels know chats that are no group's */
  hasOtherChats(): boolean
}

/** Chats that channels know, who asks to be let in, and what channels have to remember. Each call is durable. */
export interface ChatStore {
  /** forgets the chats that were quiet for longest where there are too many */
  know(chat: KnownChatRow): void
  known(jid: string): KnownChatRow | undefined
  /** the latest active first */
  allKnown(): readonly KnownChatRow[]
  forget(jid: string): void

  /** false: the chat has asked before */
  ask(pairing: PairingRow): boolean
  pairing(jid: string): PairingRow | undefined
  /** the oldest first */
  pairings(status?: PairingRow['status']): readonly PairingRow[]
  settle(jid: string, change: Pick<PairingRow, 'status' | 'decidedAt' | 'decidedBy'>): void
  /** forgets those that have waited since before `openSince`, and the oldest of those that were settled */
  prunePairings(keep: { openSince: number; settledAtMost: number }): void
  /** it may ask again; whether there was one */
  forgetPairing(jid: string): boolean

  /** what a channel wrote down; undefined: nothing */
  recall(channel: string, key: string): string | undefined
  /** undefined forgets it */
  remember(channel: string, key: string, value: string | undefined): void
  /** all of what a channel wrote down */
  forgetChannel(channel: string): void
}

const knownAtMost = 5000

export function createChatTables({ sql, atomically }: Connection) {
  const within: ChatTransaction = {
    hasOtherChats: () =>
      sql('SELECT 1 FROM known_chats WHERE jid NOT IN (SELECT jid FROM groups) LIMIT 1').get() !== undefined,
  }
  const store: ChatStore = {
    know: chat =>
      atomically(() => {
        const isNew = sql('SELECT 1 FROM known_chats WHERE jid = ?').get(chat.jid) === undefined
        sql(knownTable.replace).run(...knownTable.values(chat))
        if (isNew)
          sql(
            `DELETE FROM known_chats WHERE jid IN (SELECT jid FROM known_chats WHERE jid <> ?
             ORDER BY last_activity DESC LIMIT -1 OFFSET ?)`,
          ).run(chat.jid, knownAtMost - 1)
      }),
    known: jid => knownTable.maybe(sql('SELECT * FROM known_chats WHERE jid = ?').get(jid)),
    allKnown: () =>
      sql('SELECT * FROM known_chats ORDER BY last_activity DESC, jid').all().map(knownTable.from),
    forget: jid => void sql('DELETE FROM known_chats WHERE jid = ?').run(jid),
    ask: pairing =>
      atomically(
        () =>
          sql(`${pairingTable.insert} ON CONFLICT (jid) DO NOTHING`).run(...pairingTable.values(pairing))
            .changes > 0,
      ),
    pairing: jid => pairingTable.maybe(sql('SELECT * FROM pairings WHERE jid = ?').get(jid)),
    pairings: status =>
      sql('SELECT * FROM pairings WHERE ? IS NULL OR status = ? ORDER BY asked_at, jid')
        .all(status ?? null, status ?? null)
        .map(pairingTable.from),
    settle: (jid, change) =>
      atomically(() => {
        const { text, values } = pairingTable.set(change)
        sql(`UPDATE pairings SET ${text} WHERE jid = ?`).run(...values, jid)
      }),
    prunePairings: ({ openSince, settledAtMost }) =>
      atomically(() => {
        sql("DELETE FROM pairings WHERE status = 'open' AND asked_at < ?").run(openSince)
        sql(
          `DELETE FROM pairings WHERE jid IN (SELECT jid FROM pairings WHERE status <> 'open'
           ORDER BY decided_at DESC LIMIT -1 OFFSET ?)`,
        ).run(settledAtMost)
      }),
    forgetPairing: jid => atomically(() => sql('DELETE FROM pairings WHERE jid = ?').run(jid).changes > 0),
    recall: (channel, key) => {
      const value = sql('SELECT value FROM channel_memory WHERE channel = ? AND key = ?').get(
        channel,
        key,
      )?.value
      return value === undefined ? undefined : String(value)
    },
    remember: (channel, key, value) =>
      atomically(() => {
        if (value === undefined)
          sql('DELETE FROM channel_memory WHERE channel = ? AND key = ?').run(channel, key)
        else sql('INSERT OR REPLACE INTO channel_memory VALUES (?, ?, ?)').run(channel, key, value)
      }),
    forgetChannel: channel =>
      atomically(() => void sql('DELETE FROM channel_memory WHERE channel = ?').run(channel)),
  }
  return { store, within }
}
