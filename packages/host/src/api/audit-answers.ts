import { z } from 'zod'
import type { AuditRow } from '../store/audit-types.ts'

const point = z.object({ seq: z.int(), hash: z.string() })

export const auditEntryAnswer = point
  .extend({
    at: z.iso.datetime(),
    group: z.string().nullable(),
    actor: z.string(),
    action: z.string(),
    summary: z.string(),
    taint: z.object({ corrupted: z.boolean(), secret: z.boolean() }).nullable(),
    gate: z.string().nullable(),
    verdict: z.string().nullable(),
    decided_by: z.string().nullable(),
    reason: z.string().nullable(),
    took_ms: z.number().nullable(),
    outcome: z.string(),
    request_id: z.string().nullable(),
    details: z.record(z.string(), z.unknown()).nullable(),
  })
  .meta({ id: 'AuditEntry' })
export const auditAnswer = z.array(auditEntryAnswer)
export const auditHeadAnswer = point
export const auditReportAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    entries: z.int(),
    removed: z
      .object({ until: z.int(), at: z.iso.datetime() })
      .nullable()
      .describe('the last entry that was removed for its age'),
    head: point,
  }),
  z.object({ ok: z.literal(false), problem: z.string(), seq: z.int(), message: z.string() }),
])

export type AuditEntryAnswer = z.infer<typeof auditEntryAnswer>

const lastInstant = Date.UTC(9999, 11, 31)
/** Somebody may have written any number there, and has to be shown all the same. */
export const auditTime = (ms: number) => new Date(Math.min(Math.max(ms, 0), lastInstant)).toISOString()

export const auditEntryOf = (row: AuditRow): AuditEntryAnswer => ({
  seq: row.seq,
  at: auditTime(row.at),
  group: row.group,
  actor: row.actor,
  action: row.action,
  summary: row.summary,
  taint: row.taint,
  gate: row.gate,
  verdict: row.verdict,
  decided_by: row.decidedBy,
  reason: row.reason,
  took_ms: row.tookMs,
  outcome: row.outcome,
  request_id: row.requestId,
  details: row.details,
  hash: row.hash,
})
