import type { StatementSync } from 'node:sqlite'
import { auditColumns, auditFromRow, auditValues, chained } from './audit-row.ts'
import { type Connection, where } from './connection.ts'
import type { AuditEntry, AuditPoint, AuditRow } from './entities/audit.ts'
import type { Row } from './table.ts'

export interface AuditFilter {
  group?: string
  actor?: string
  action?: string
  gate?: string
  outcome?: string
  decidedBy?: string
  requestId?: string
  /** somewhere in its action, summary, reason or details; letters of either case */
  text?: string
  since?: number
  until?: number
}

/**
 * changed    the entry is not the one that was written there, or does not follow from the one before
 * missing    there is no such entry
 * inserted   an entry lies where all of them were removed
 */
export interface AuditBreak {
  problem: 'changed' | 'missing' | 'inserted'
  seq: number
}

/** Inside one transaction: what is told becomes durable together with what it tells of. */
export interface AuditTransaction {
  /** the entry's number */
  audit(entry: AuditEntry): number
}

export interface AuditStore {
  /** in a commit of its own */
  append(entry: AuditEntry): number
  head(): AuditPoint
  /** where the chain begins: the last entry that was removed, and when; 0 if none was */
  anchor(): AuditPoint & { at: number | null }
  entry(seq: number): AuditRow | undefined
  /** Looks through so many entries below a number, newest first; `below` says where to go on, null: nowhere. */
  find(
    filter: AuditFilter,
    page: { below: number | null; span: number; limit: number },
  ): { rows: readonly AuditRow[]; below: number | null }
  /** Goes so many entries along the chain: how far it holds; `checked` is 0 at its end. */
  walk(from: AuditPoint, limit: number): { at: AuditPoint; checked: number; broken: AuditBreak | null }
  /** the triggers that are not there any more */
  missingTriggers(): readonly string[]
  /** Removes some of the entries that are too many or too old, and moves the anchor; whether there are more. */
  prune(keep: { entries: number; days?: number | undefined }, now: number): boolean
}

export interface AuditTable {
  store: AuditStore
  within: AuditTransaction
}

/** so many entries at a time are removed, so that nobody waits for it */
const prunedAtOnce = 1000
const dayMs = 86_400_000
/** before the first entry */
const beginning = { seq: 0, hash: '0'.repeat(64), at: null }

const triggers = [
  'audit_anchor_alone',
  'audit_anchor_forward',
  'audit_anchor_stays',
  'audit_no_change',
  'audit_no_removal',
  'audit_only_next',
]

/**
 * The audit log. One connection writes, so the last hash is kept in memory and the next entry needs no look at the
 * one before; a transaction that is taken back takes this memory along.
 */
export function createAuditTable({ sql, atomically, onRollback }: Connection): AuditTable {
  const insert = `INSERT INTO audit (${auditColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  let last: AuditPoint | undefined
  onRollback(() => {
    last = undefined
  })

  const anchor = () => {
    const row = sql('SELECT seq, hash, at FROM audit_anchor').get()
    return row
      ? { seq: Number(row.seq), hash: String(row.hash), at: row.at === null ? null : Number(row.at) }
      : beginning
  }
  const head = (): AuditPoint => {
    if (last) return last
    const row = sql('SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1').get() ?? anchor()
    last = { seq: Number(row.seq), hash: String(row.hash) }
    return last
  }
  const add = (entry: AuditEntry): number => {
    const before = head()
    const seq = before.seq + 1
    const values = auditValues(seq, entry)
    const hash = chained(before.hash, values)
    sql(insert).run(...values, hash)
    last = { seq, hash }
    return seq
  }

  /** Numbers of any size come back as what they are: whatever somebody has put there is shown, not stumbled over. */
  const read = (text: string): StatementSync => {
    const statement = sql(text)
    statement.setReadBigInts(true)
    return statement
  }

  const walk: AuditStore['walk'] = (from, limit) => {
    const stray = read('SELECT seq FROM audit ORDER BY seq LIMIT 1').get()
    if (stray && Number(stray.seq) <= anchor().seq) {
      return { at: from, checked: 0, broken: { problem: 'inserted', seq: Number(stray.seq) } }
    }
    const rows = read(`SELECT ${auditColumns} FROM audit WHERE seq > ? ORDER BY seq LIMIT ?`).all(
      from.seq,
      limit,
    )
    let at = from
    for (const [checked, row] of rows.entries()) {
      const broken = breakAt(at, row)
      if (broken) return { at, checked, broken }
      at = { seq: Number(row.seq), hash: String(row.hash) }
    }
    return { at, checked: rows.length, broken: null }
  }

  return {
    within: { audit: add },
    store: {
      append: entry => atomically(() => add(entry)),
      head,
      anchor,
      entry(seq) {
        const row = read(`SELECT ${auditColumns} FROM audit WHERE seq = ?`).get(seq)
        return row && auditFromRow(row)
      },
      find(filter, { below, span, limit }) {
        const top = below ?? Number.MAX_SAFE_INTEGER
        const bottom = sql('SELECT seq FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?').get(
          top,
          span - 1,
        )
        const { text, values } = where({
          'seq < ?': top,
          'seq >= ?': Number(bottom?.seq ?? Number.MIN_SAFE_INTEGER),
          'group_folder = ?': filter.group,
          'actor = ?': filter.actor,
          'action = ?': filter.action,
          'gate = ?': filter.gate,
          'outcome = ?': filter.outcome,
          'decided_by = ?': filter.decidedBy,
          'request_id = ?': filter.requestId,
          'at >= ?': filter.since,
          'at < ?': filter.until,
          "concat_ws(char(31), action, summary, reason, details) LIKE ? ESCAPE '!'":
            filter.text === undefined ? undefined : `%${filter.text.replace(/[%_!]/g, '!$&')}%`,
        })
        const rows = read(`SELECT ${auditColumns} FROM audit ${text} ORDER BY seq DESC LIMIT ?`)
          .all(...values, limit)
          .map(auditFromRow)
        return { rows, below: bottom ? Number(bottom.seq) : null }
      },
      walk,
      missingTriggers() {
        const there = new Set(
          sql("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            .all()
            .map(({ name }) => name),
        )
        return triggers.filter(name => !there.has(name))
      },
      prune({ entries, days }, now) {
        const from = anchor()
        const newestRemoved = head().seq - entries
        const before = days === undefined ? Number.NEGATIVE_INFINITY : now - days * dayMs
        const rows = read('SELECT seq, hash, at FROM audit WHERE seq > ? ORDER BY seq LIMIT ?').all(
          from.seq,
          prunedAtOnce,
        )
        // Never past one that is to stay, even where the clock was set back and a later one is older.
        const kept = rows.findIndex(({ seq, at }) => Number(seq) > newestRemoved && Number(at) >= before)
        const count = kept === -1 ? rows.length : kept
        const until = rows[count - 1]
        if (!until) return false
        const seq = Number(until.seq)
        const { broken } = walk(from, count)
        atomically(() => {
          // A place where the chain is broken goes with the rest; that there was one stays.
          if (broken) add(brokenWhenRemoved(broken, now))
          sql('UPDATE audit_anchor SET seq = ?, hash = ?, at = ?').run(seq, String(until.hash), now)
          sql('DELETE FROM audit WHERE seq <= ?').run(seq)
        })
        return count === prunedAtOnce
      },
    },
  }
}

/** What is wrong with the next row after a place in the chain. */
function breakAt(before: AuditPoint, row: Row): AuditBreak | undefined {
  const values = Object.values(row).map(value => (typeof value === 'bigint' ? Number(value) : value))
  const hash = values.pop()
  const seq = before.seq + 1
  if (values[0] !== seq) return { problem: 'missing', seq }
  return hash === chained(before.hash, values) ? undefined : { problem: 'changed', seq }
}

const brokenWhenRemoved = ({ problem, seq }: AuditBreak, at: number): AuditEntry => ({
  at,
  group: null,
  actor: 'host',
  action: 'audit_removal',
  summary: `Old entries were removed; the chain did not hold at entry ${seq}.`,
  outcome: 'noted',
  details: { problem, seq },
})
