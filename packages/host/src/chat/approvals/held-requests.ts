import type { Outcome } from '@hatchway/protocol'
import { digestOf, type Held, heldIn } from '../../guard/guard.ts'
import type { RequestRow, Store } from '../../store/types.ts'
import type { ApprovalsOptions } from './types.ts'

/** What the request queue knows of held commands. */
export interface HeldRequests {
  /** undefined: it is not held, or not any more */
  at(seq: number): { request: RequestRow; held: Held | undefined } | undefined
  digestAt(seq: number): string | undefined
  /** what the request has come to; null: nothing is known of it */
  outcomeOf(seq: number): Outcome | null
  /** others of the group that want exactly this and wait behind its card */
  waitingBehind(group: string, digest: string): { request: RequestRow; held: Held }[]
}

export function createHeldRequests({
  store,
  requestQueue,
}: {
  store: Pick<Store, 'approvals' | 'questions'>
  requestQueue: ApprovalsOptions['requestQueue']
}): HeldRequests {
  const open = () => requestQueue?.open() ?? []

  const at: HeldRequests['at'] = seq => {
    const request = open().find(candidate => candidate.seq === seq && candidate.kind === 'held')
    return request && { request, held: heldIn(request) }
  }

  return {
    at,
    digestAt(seq) {
      const held = at(seq)?.held
      return held && digestOf(held.action)
    },
    outcomeOf(seq) {
      // One that was released, and is still at work under the same number, was let through.
      const isReleased = open().some(request => request.seq === seq && request.kind !== 'held')
      return isReleased ? { ok: true, result: {} } : store.questions.outcome(seq)
    },
    waitingBehind: (group, digest) =>
      open().flatMap(request => {
        const { seq, kind } = request
        if (kind !== 'held' || request.group !== group || !requestQueue?.isWaiting(seq)) return []
        if (store.approvals.approval(seq)) return []
        const held = heldIn(request)
        return held && digestOf(held.action) === digest ? [{ request, held }] : []
      }),
  }
}
