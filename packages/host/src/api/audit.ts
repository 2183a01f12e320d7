import { folderSchema, refusal } from '@hatchway/protocol'
import type { Hono } from 'hono'
import { z } from 'zod'
import { searchAudit } from '../guard/audit/search.ts'
import { verifyAudit } from '../guard/audit/verify.ts'
import type { AuditRow } from '../store/audit-types.ts'
import type { Store } from '../store/types.ts'
import { ApiError } from './failure.ts'
import { check, present, whole } from './requests.ts'

const point = z.object({ seq: z.int(), hash: z.string() })

export const auditEntryAnswer = point.extend({
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
type AuditReportAnswer = z.infer<typeof auditReportAnswer>

const seqSchema = whole(0, Number.MAX_SAFE_INTEGER)
const name = z.string().min(1).max(200)
const instant = z.iso.datetime({ offset: true }).transform(text => Date.parse(text))
const auditQuery = z.object({
  group: folderSchema.optional(),
  actor: name.optional(),
  action: name.optional(),
  gate: z.enum(['allow', 'inspect', 'ask', 'block']).optional(),
  outcome: name.optional(),
  decided_by: name.optional(),
  request: name.optional(),
  text: name.optional(),
  since: instant.optional(),
  until: instant.optional(),
  before: seqSchema.optional(),
  limit: whole(1, 1000).optional(),
})
const keptPoint = z
  .string()
  .regex(/^\d{1,16}:[0-9a-f]{64}$/, 'must be SEQ:HASH, as the head was given')
  .transform(text => {
    const [seq, hash = ''] = text.split(':')
    return { seq: Number(seq), hash }
  })
const verifyQuery = z.object({ head: keptPoint.optional() })

/** What the guard decided, whether all of it is still there, and the proof to keep elsewhere. */
export function addAuditRoutes(app: Hono, { audit }: Pick<Store, 'audit'>): void {
  app.get('/audit', async c => {
    const { before, limit = 100, decided_by, request, ...filter } = check(auditQuery, c.req.query())
    const rows = await searchAudit(audit, present({ ...filter, decidedBy: decided_by, requestId: request }), {
      ...present({ before }),
      limit,
    })
    return c.json(rows.map(entryOf))
  })
  app.get('/audit/head', c => c.json(audit.head()))
  app.get('/audit/verify', async c => {
    const report = await verifyAudit(audit, check(verifyQuery, c.req.query()).head)
    if (!report.ok) return c.json(report)
    const { anchor, ...rest } = report
    const removed = anchor.at === null ? null : { until: anchor.seq, at: iso(anchor.at) }
    return c.json({ ...rest, removed } satisfies AuditReportAnswer)
  })
  app.get('/audit/:seq', c => {
    const seq = check(seqSchema, c.req.param('seq'), 'seq')
    const row = audit.entry(seq)
    if (!row) throw new ApiError(refusal('not_found', `The audit log has no entry ${seq}.`))
    return c.json(entryOf(row))
  })
}

const lastInstant = Date.UTC(9999, 11, 31)
/** Somebody may have written any number there, and has to be shown all the same. */
const iso = (ms: number) => new Date(Math.min(Math.max(ms, 0), lastInstant)).toISOString()

const entryOf = (row: AuditRow): AuditEntryAnswer => ({
  seq: row.seq,
  at: iso(row.at),
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
