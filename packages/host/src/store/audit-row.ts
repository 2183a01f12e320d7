import { hash } from 'node:crypto'
import type { SQLInputValue } from 'node:sqlite'
import type { Taint } from '../base/taint.ts'
import { type AuditEntry, type AuditRow, auditSchema } from './entities/audit.ts'
import { type Row, tableOf } from './table.ts'

/** In the order in which they are hashed; `hash` itself comes last and is not. */
export const auditColumns =
  'seq, at, group_folder, actor, action, summary, taint, gate, verdict, decided_by, reason, took_ms, outcome, request_id, details, hash'

/** The hash of a row after the one before it. docs/audit.md says the same to strangers. */
export const chained = (previous: string, values: readonly unknown[]): string =>
  hash('sha256', JSON.stringify([previous, ...values]))

const longest = { name: 200, summary: 1000, reason: 2000 }
const detailsBytes = 8192
/** as JSON again at most three bytes each */
const detailsBegin = 2000

/** Text that comes out of the database, and out of any tool that reads it, as it went in. */
const plain = (text: string, most: number): string =>
  (text.length > most ? `${text.slice(0, most - 1)}…` : text).toWellFormed().replaceAll('\0', '\ufffd')

const optional = (text: string | null | undefined, most: number) =>
  text === null || text === undefined ? null : plain(text, most)

/** An entry must never be what its transaction fails for. */
const whole = (value: number): number =>
  Math.round(Math.min(Math.max(value, 0), Number.MAX_SAFE_INTEGER)) || 0

export const auditValues = (seq: number, entry: AuditEntry): SQLInputValue[] => [
  seq,
  whole(entry.at),
  optional(entry.group, longest.name),
  plain(entry.actor, longest.name),
  plain(entry.action, longest.name),
  plain(entry.summary, longest.summary),
  entry.taint ? taintText(entry.taint) : null,
  entry.gate ?? null,
  optional(entry.verdict, longest.name),
  optional(entry.decidedBy, longest.name),
  optional(entry.reason, longest.reason),
  entry.tookMs === null || entry.tookMs === undefined ? null : whole(entry.tookMs),
  plain(entry.outcome, longest.name),
  optional(entry.requestId, longest.name),
  entry.details ? detailsText(entry.details) : null,
]

function detailsText(details: Readonly<Record<string, unknown>>): string {
  let text: string
  try {
    text = JSON.stringify(details)
  } catch {
    // A circle, a bigint, or deeper than the stack: the entry counts for more than its details.
    return '{"cut":"not JSON"}'
  }
  const bytes = Buffer.byteLength(text)
  return bytes <= detailsBytes ? text : JSON.stringify({ cut: bytes, begins: text.slice(0, detailsBegin) })
}

const taintText = ({ corrupted, secret }: Taint): string =>
  [...(corrupted ? ['corrupted'] : []), ...(secret ? ['secret'] : [])].join(' ')

const plainTable = tableOf('audit', auditSchema.omit({ taint: true, details: true }))

/** Takes whatever is there: a log that somebody has changed must still be readable. */
export const auditFromRow = (row: Row): AuditRow => ({
  ...plainTable.from(row),
  taint:
    row.taint === null
      ? null
      : { corrupted: `${row.taint}`.includes('corrupted'), secret: `${row.taint}`.includes('secret') },
  details: row.details === null ? null : detailsOf(String(row.details)),
})

function detailsOf(json: string): AuditRow['details'] {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' ? value && { ...value } : { value }
  } catch (error) {
    if (error instanceof SyntaxError) return { unreadable: json }
    throw error
  }
}
