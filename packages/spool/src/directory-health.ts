import type { OpenFailure } from './directory.ts'
import type { DirectoryReporter } from './directory-reporter.ts'
import { firstRetryMs, healthOf, requestScan, type Subdirectory } from './inbox-state.ts'

/**
 * Directories that cannot be read or whose files cannot be claimed. Each problem is reported once, when it starts,
 * and retried less and less often.
 *
 *   unseen       → ok                              first successful scan
 *   ok           → missing, not_a_directory,       the directory cannot be opened
 *                  unreadable
 *                → unclaimable                     a file cannot be moved out of it
 *   any failure  → ok                              a retry worked; this is reported too
 */
export interface DirectoryHealth {
  cannotRead(subdirectory: Subdirectory, why: OpenFailure): void
  canRead(subdirectory: Subdirectory): void
  cannotClaim(subdirectory: Subdirectory, code: string): void
  canClaim(subdirectory: Subdirectory): void
  /** some files could be claimed, so the others are retried soon */
  claimedSome(subdirectory: Subdirectory): void
  /** our own failed claims cause events; true if this event is probably one of them */
  ignoresEvent(subdirectory: Subdirectory): boolean
  isFailing(subdirectory: Subdirectory): boolean
  isBackingOff(subdirectory: Subdirectory, time: number): boolean
  /** calls back for each directory that is due for a retry */
  retry(ready: (subdirectory: Subdirectory) => void): void
}

const unclaimablePauseMs = 100
const longestMs = 10_000
/** Without a watcher only a scan finds new files, so a few stuck files must not delay them for long. */
const longestUnwatchedMs = 1000

const advice: Record<OpenFailure, string> = {
  missing: 'is missing; its files are processed once it exists again',
  not_a_directory: 'is not a directory (links are never followed); put a directory in its place',
  unreadable: 'cannot be read; give the host permission to list it',
}

export function createDirectoryHealth(options: {
  reportDirectory: DirectoryReporter
  clock(): number
}): DirectoryHealth {
  const { reportDirectory, clock } = options
  const failing = new Set<Subdirectory>()

  const isBackingOff = (subdirectory: Subdirectory, time: number) =>
    failing.has(subdirectory) && time < healthOf(subdirectory).retryAt

  const retryLater = (subdirectory: Subdirectory) => {
    const health = healthOf(subdirectory)
    const time = clock()
    // An event caused a scan before the retry was due. That does not count as a failed retry.
    if (isBackingOff(subdirectory, time)) return
    health.retryAt = time + health.retryMs
    const isWatched = subdirectory.watcher !== undefined || subdirectory.crowded
    const longest = subdirectory.condition === 'unclaimable' && !isWatched ? longestUnwatchedMs : longestMs
    health.retryMs = Math.min(longest, health.retryMs * 2)
    failing.add(subdirectory)
  }

  const retrySoon = (subdirectory: Subdirectory, ms: number) => {
    const health = healthOf(subdirectory)
    health.retryAt = Math.min(health.retryAt, health.claimFailedAt + ms)
  }

  const recover = (subdirectory: Subdirectory) => {
    subdirectory.condition = 'ok'
    healthOf(subdirectory).retryMs = firstRetryMs
    failing.delete(subdirectory)
  }

  return {
    cannotRead(subdirectory, why) {
      subdirectory.scanRequested = false
      if (subdirectory.condition !== why) {
        subdirectory.condition = why
        reportDirectory(why, subdirectory, advice[why])
      }
      retryLater(subdirectory)
    },
    canRead(subdirectory) {
      if (subdirectory.condition === 'ok' || subdirectory.condition === 'unclaimable') return
      if (subdirectory.condition === 'unseen') {
        subdirectory.condition = 'ok'
        return
      }
      reportDirectory('appeared', subdirectory, 'can be read again')
      recover(subdirectory)
    },
    cannotClaim(subdirectory, code) {
      if (subdirectory.condition !== 'unclaimable') {
        subdirectory.condition = 'unclaimable'
        const why =
          code === 'EXDEV'
            ? 'is on a different file system than the spool; put both on the same one'
            : `does not allow its files to be moved (${code}); nothing in it is processed until it does`
        reportDirectory('unclaimable', subdirectory, why)
      }
      // The directory is not scanned again before the retry is due, no matter how many files it has.
      subdirectory.scanRequested = false
      const health = healthOf(subdirectory)
      health.claimFailedAt = clock()
      if (!health.claimFailed) retryLater(subdirectory)
      health.claimFailed = true
    },
    canClaim(subdirectory) {
      recover(subdirectory)
      if (!subdirectory.watcher) requestScan(subdirectory)
      reportDirectory('claimable', subdirectory, 'allows its files to be moved again')
    },
    claimedSome: subdirectory => retrySoon(subdirectory, firstRetryMs),
    ignoresEvent(subdirectory) {
      if (subdirectory.condition !== 'unclaimable') return false
      if (clock() >= healthOf(subdirectory).claimFailedAt + unclaimablePauseMs) return false
      retrySoon(subdirectory, unclaimablePauseMs)
      return true
    },
    isFailing: subdirectory => failing.has(subdirectory),
    isBackingOff,
    retry(ready) {
      const time = clock()
      for (const subdirectory of failing) {
        if (subdirectory.inbox.removed) failing.delete(subdirectory)
        else if (!isBackingOff(subdirectory, time)) ready(subdirectory)
      }
    },
  }
}
