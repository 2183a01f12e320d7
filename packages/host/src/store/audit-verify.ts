import { setImmediate as breathe } from 'node:timers/promises'
import type { AuditBreak, AuditPoint, AuditStore } from './types.ts'

/**
 * unguarded   entries can be changed now: triggers are gone
 * cut_off     the log ends before the point that was kept elsewhere
 * rewritten   it has another entry at that point
 * removed     it no longer reaches back to that point
 */
type AuditProblem = AuditBreak['problem'] | 'unguarded' | 'cut_off' | 'rewritten' | 'removed'

export type AuditReport =
  | { ok: true; entries: number; anchor: AuditPoint & { at: number | null }; head: AuditPoint }
  | { ok: false; problem: AuditProblem; seq: number; message: string }

/** A few milliseconds of work, so that others get their turn in between. */
const slice = 500

/**
 * Goes along the whole chain, while entries are added and removed. That the newest entries were cut off, or everything
 * was written anew, only shows against a point that was kept elsewhere.
 */
export async function verifyAudit(audit: AuditStore, kept?: AuditPoint): Promise<AuditReport> {
  const missing = audit.missingTriggers()
  if (missing.length > 0) {
    return failed(
      'unguarded',
      0,
      `The database no longer keeps entries from being changed: ${missing.join(', ')} is gone.`,
    )
  }
  // What is added meanwhile is not waited for: it might never end.
  const until = audit.head().seq
  let at: AuditPoint = audit.anchor()
  let entries = 0
  for (;;) {
    const anchor = audit.anchor()
    if (anchor.seq > at.seq) at = anchor
    const { checked, broken, at: reached } = audit.walk(at, slice)
    if (broken) return failed(broken.problem, broken.seq, sentences[broken.problem](broken.seq))
    at = reached
    entries += checked
    if (checked === 0 || at.seq >= until) {
      const head = { seq: at.seq, hash: at.hash }
      return (kept && compare(audit, kept)) ?? { ok: true, entries, anchor, head }
    }
    await breathe()
  }
}

function compare(audit: AuditStore, { seq, hash }: AuditPoint): AuditReport | undefined {
  const [head, anchor] = [audit.head(), audit.anchor()]
  if (seq > head.seq) {
    return failed(
      'cut_off',
      seq,
      `The log ends at entry ${head.seq}; entry ${seq} was there when its hash was kept.`,
    )
  }
  if (seq < anchor.seq) {
    return failed(
      'removed',
      seq,
      `Entry ${seq} cannot be looked at any more: entries up to ${anchor.seq} were removed for their age. Keep newer hashes.`,
    )
  }
  const found = seq === anchor.seq ? anchor.hash : audit.entry(seq)?.hash
  return found === hash
    ? undefined
    : failed(
        'rewritten',
        seq,
        `Entry ${seq} has another hash than the one that was kept: the log was written anew.`,
      )
}

const failed = (problem: AuditProblem, seq: number, message: string): AuditReport => ({
  ok: false,
  problem,
  seq,
  message,
})

const sentences: Record<AuditBreak['problem'], (seq: number) => string> = {
  changed: seq =>
    `The audit log is broken at entry ${seq}: it was changed, or does not follow from what stands before it.`,
  missing: seq => `The audit log is broken at entry ${seq}: it is missing, and later ones are there.`,
  inserted: seq =>
    `The audit log is broken at entry ${seq}: all entries up to there were removed, and it was put there later.`,
}
