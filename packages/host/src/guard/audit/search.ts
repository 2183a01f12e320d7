import { setImmediate as breathe } from 'node:timers/promises'
import type { AuditFilter, AuditRow, AuditStore } from '../../store/types.ts'

/** Entries looked through without a pause: a few milliseconds, whether they fit or not. */
const span = 2000

/** Newest first. No column has an index, as every entry would pay for it; a search of a million takes a second or so. */
export async function searchAudit(
  audit: Pick<AuditStore, 'find'>,
  filter: AuditFilter,
  { before, limit }: { before?: number; limit: number },
): Promise<AuditRow[]> {
  const found: AuditRow[] = []
  let below: number | null = before ?? null
  for (;;) {
    const page = audit.find(filter, { below, span, limit: limit - found.length })
    found.push(...page.rows)
    below = page.below
    if (below === null || found.length >= limit) return found
    await breathe()
  }
}
