import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { searchAudit } from '../guard/audit/search.ts'
import { verifyAudit } from '../store/audit-verify.ts'
import { auditPointSchema } from '../store/entities/audit.ts'
import { isoOf } from '../store/entities/instant.ts'
import { auditAnswer, auditEntry, auditEntryAnswer, auditReportAnswer } from './answers.ts'
import type { HostContext } from './host.ts'
import { present, whole } from './requests.ts'
import { notFound, type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('guard')

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
export const auditRoutes: readonly Route<HostContext>[] = [
  route.get('/audit', {
    summary: 'What the guard decided and noted, newest first',
    role: 'viewer',
    query: auditQuery,
    answer: auditAnswer,
    async handle({ host }, { query: { before, limit = 100, decided_by, request, ...filter } }) {
      const wanted = present({ ...filter, decidedBy: decided_by, requestId: request })
      const rows = await searchAudit(host.store.audit, wanted, { ...present({ before }), limit })
      return rows.map(auditEntry.of)
    },
  }),
  route.get('/audit/head', {
    summary: 'The last entry’s number and hash, to be kept elsewhere',
    role: 'viewer',
    answer: auditPointSchema,
    handle: ({ host }) => host.store.audit.head(),
  }),
  route.get('/audit/verify', {
    summary: 'Whether all of the log is there and unchanged',
    role: 'viewer',
    query: verifyQuery,
    answer: auditReportAnswer,
    async handle({ host }, { query }) {
      const report = await verifyAudit(host.store.audit, query.head)
      if (!report.ok) return report
      const { anchor, ...rest } = report
      return { ...rest, removed: anchor.at === null ? null : { until: anchor.seq, at: isoOf(anchor.at) } }
    },
  }),
  route.get('/audit/:seq', {
    summary: 'One entry of the audit log',
    role: 'viewer',
    params: z.object({ seq: seqSchema }),
    answer: auditEntryAnswer,
    handle({ host }, { params: { seq } }) {
      const row = host.store.audit.entry(seq)
      if (!row) throw notFound(`The audit log has no entry ${seq}.`)
      return auditEntry.of(row)
    },
  }),
]
