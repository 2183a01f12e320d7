import type { PinFailure } from './directory.ts'
import { type Drop, retryFirstMs, troublesOf, wantLook } from './drop.ts'
import type { Tell } from './tell.ts'

/**
 * Directories that cannot be read, or that do not let their files be moved out. Each is reported when it begins, and
 * tried again in its own time, ever less often.
 */
export interface Trouble {
  cannotRead(drop: Drop, why: PinFailure): void
  canRead(drop: Drop): void
  cannotClaim(drop: Drop, code: string): void
  canClaim(drop: Drop): void
  /** some of it could be claimed: the rest need not wait as long */
  partlyClaimed(drop: Drop): void
  /** a ring is no news where each of our own attempts rings: true if it is to be passed over */
  ignoresRing(drop: Drop): boolean
  isTroubled(drop: Drop): boolean
  isWaiting(drop: Drop, time: number): boolean
  /** those whose time has come want a look */
  retry(ready: (drop: Drop) => void): void
}

const unclaimablePauseMs = 100
const longestMs = 10_000
/** Where only a look shows what has come, a few stuck files must not keep the others waiting. */
const longestUnnoticedMs = 1000

const advice: Record<PinFailure, string> = {
  missing: 'is missing; its files are taken as soon as it is there again',
  not_a_directory: 'is not a directory (a link, or a file, is never followed); put a directory in its place',
  unreadable: 'cannot be read; give the host the right to list it',
}

export function createTrouble(options: { tell: Tell; clock(): number }): Trouble {
  const { tell, clock } = options
  const troubled = new Set<Drop>()

  const isWaiting = (drop: Drop, time: number) => troubled.has(drop) && time < troublesOf(drop).retryAt

  const retryLater = (drop: Drop) => {
    const troubles = troublesOf(drop)
    const time = clock()
    // A look in between, because somebody rang, is not a retry that failed.
    if (isWaiting(drop, time)) return
    troubles.retryAt = time + troubles.retryMs
    const isNoticed = drop.bell !== undefined || drop.crowded
    const longest = drop.condition === 'unclaimable' && !isNoticed ? longestUnnoticedMs : longestMs
    troubles.retryMs = Math.min(longest, troubles.retryMs * 2)
    troubled.add(drop)
  }

  const retrySoon = (drop: Drop, ms: number) => {
    const troubles = troublesOf(drop)
    troubles.retryAt = Math.min(troubles.retryAt, troubles.failedAt + ms)
  }

  const isOver = (drop: Drop) => {
    drop.condition = 'fine'
    troublesOf(drop).retryMs = retryFirstMs
    troubled.delete(drop)
  }

  return {
    cannotRead(drop, why) {
      drop.dirty = false
      if (drop.condition !== why) {
        drop.condition = why
        tell(why, drop, advice[why])
      }
      retryLater(drop)
    },
    canRead(drop) {
      if (drop.condition === 'fine' || drop.condition === 'unclaimable') return
      if (drop.condition === 'unseen') {
        drop.condition = 'fine'
        return
      }
      tell('appeared', drop, 'can be read again')
      isOver(drop)
    },
    cannotClaim(drop, code) {
      if (drop.condition !== 'unclaimable') {
        drop.condition = 'unclaimable'
        const why =
          code === 'EXDEV'
            ? 'is on another file system than the spool; keep them on one'
            : `does not let its files be moved out (${code}); nothing in it is executed until it does`
        tell('unclaimable', drop, why)
      }
      // However full it is, it is not looked into again before its time.
      drop.dirty = false
      const troubles = troublesOf(drop)
      troubles.failedAt = clock()
      if (!troubles.failed) retryLater(drop)
      troubles.failed = true
    },
    canClaim(drop) {
      isOver(drop)
      if (!drop.bell) wantLook(drop)
      tell('claimable', drop, 'lets its files be moved out again')
    },
    partlyClaimed: drop => retrySoon(drop, retryFirstMs),
    ignoresRing(drop) {
      if (drop.condition !== 'unclaimable') return false
      if (clock() >= troublesOf(drop).failedAt + unclaimablePauseMs) return false
      retrySoon(drop, unclaimablePauseMs)
      return true
    },
    isTroubled: drop => troubled.has(drop),
    isWaiting,
    retry(ready) {
      const time = clock()
      for (const drop of troubled) {
        if (drop.inbox.removed) troubled.delete(drop)
        else if (!isWaiting(drop, time)) ready(drop)
      }
    },
  }
}
