import { z } from 'zod'
import type { Gate } from '../../base/taint.ts'
import { instant } from './instant.ts'
import { taintSchema } from './taint.ts'

/** A place in the chain. Kept elsewhere, it shows later whether the log up to it is still the same. */
export const auditPointSchema = z.object({ seq: z.int(), hash: z.string() })
export type AuditPoint = z.output<typeof auditPointSchema>

/** One thing the guard decided or noted, as it was read back: its words may be those of another version. */
export const auditSchema = auditPointSchema.extend({
  at: instant,
  /** the group's folder; null: it concerns no group */
  group: z.string().nullable(),
  /** who wanted it */
  actor: z.string(),
  /** a command, a service's tool, `shell`, or what was done to the guard itself */
  action: z.string(),
  /** for people, in one line */
  summary: z.string(),
  taint: taintSchema.nullable(),
  gate: z.string().nullable(),
  /** what an inspector made of it */
  verdict: z.string().nullable(),
  decidedBy: z.string().nullable(),
  reason: z.string().nullable(),
  /** from the wish to the decision */
  tookMs: z.number().nullable(),
  /** `allowed`, `denied`, `held`, `expired`, `withdrawn`, or `noted` where nothing was decided */
  outcome: z.string(),
  requestId: z.string().nullable(),
  /** a few words more, for programs; at most 8 KiB as JSON */
  details: z.record(z.string(), z.unknown()).nullable(),
})
export type AuditRow = z.output<typeof auditSchema>

/** Who it was. Names that people or configurations chose come with a prefix, so that none can pass for another. */
export type Who =
  | 'agent'
  | 'operator'
  | 'host'
  | 'gate'
  | `rule:${string}`
  | `inspector:${string}`
  | `person:${string}`

type Optional<T> = { [K in keyof T]?: T[K] | undefined }
/** One entry as it is added. Long texts are cut, see docs/audit.md. */
export type AuditEntry = Pick<AuditRow, 'at' | 'group' | 'action' | 'summary' | 'outcome'> &
  Optional<Pick<AuditRow, 'taint' | 'verdict' | 'reason' | 'tookMs' | 'requestId' | 'details'>> & {
    actor: Who
    gate?: Gate | null | undefined
    decidedBy?: Who | null | undefined
  }
