import type { Gate, Taint } from '../base/taint.ts'

/** Who it was. Names that people or configurations chose come with a prefix, so that none can pass for another. */
export type Who =
  | 'agent'
  | 'operator'
  | 'host'
  | 'gate'
  | `rule:${string}`
  | `inspector:${string}`
  | `person:${string}`

/** One thing the guard decided or noted. Long texts are cut, see docs/audit.md. */
export interface AuditEntry {
  /** milliseconds since 1970 */
  at: number
  /** the group's folder; null: it concerns no group */
  group: string | null
  /** who wanted it */
  actor: Who
  /** a command, a service's tool, `shell`, or what was done to the guard itself */
  action: string
  /** for people, in one line */
  summary: string
  /** `allowed`, `denied`, `held`, `expired`, `withdrawn`, or `noted` where nothing was decided */
  outcome: string
  taint?: Taint | null | undefined
  gate?: Gate | null | undefined
  /** what an inspector made of it */
  verdict?: string | null | undefined
  decidedBy?: Who | null | undefined
  reason?: string | null | undefined
  /** from the wish to the decision */
  tookMs?: number | null | undefined
  requestId?: string | null | undefined
  /** a few words more, for programs; at most 8 KiB as JSON */
  details?: Readonly<Record<string, unknown>> | null | undefined
}

/** A place in the chain. Kept elsewhere, it shows later whether the log up to it is still the same. */
export interface AuditPoint {
  seq: number
  hash: string
}

/** An entry as it was read back: its words may be those of another version. */
export interface AuditRow extends AuditPoint {
  at: number
  group: string | null
  actor: string
  action: string
  summary: string
  taint: Taint | null
  gate: string | null
  verdict: string | null
  decidedBy: string | null
  reason: string | null
  tookMs: number | null
  outcome: string
  requestId: string | null
  details: Readonly<Record<string, unknown>> | null
}

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
