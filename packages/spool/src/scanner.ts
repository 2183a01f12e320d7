import { lstatSync } from 'node:fs'
import { createAbandonedFileCleanup } from './abandoned-files.ts'
import { type DirectoryHandle, errorCode, type OpenFailure, within } from './directory.ts'
import type { DirectoryHandles } from './directory-handles.ts'
import type { DirectoryHealth } from './directory-health.ts'
import type { DirectoryReporter } from './directory-reporter.ts'
import {
  type Entry,
  healthOf,
  type InboxState,
  isScanDue,
  isScanPaused,
  requestScan,
  type Subdirectory,
} from './inbox-state.ts'
import { countPosted, type DirectoryScan, isAtomic, isLarge, type Listing, startScan } from './listing.ts'
import { isValidName } from './names.ts'
import type { Polling } from './polling.ts'
import { settledMs } from './sweeper.ts'
import type { Timers } from './timers.ts'
import type { Watchers } from './watchers.ts'

/**
 * Lists the directories of an inbox and fills its queue, in the order the files were posted.
 *
 * An inbox goes through these steps:
 *   single event      One event named one file, and nothing else can be waiting: events arrive in order, so everything
 *                     posted earlier was already reported and claimed. The file is queued without a scan. The scan
 *                     follows after it, in case there is more.
 *   scanning          In all other cases the directories are listed. A large one takes several rounds.
 *   queue filled      All directories are listed, and their files are merged and sorted.
 *
 * Listing takes time, and files arrive in one directory while another is listed. If the listings do not show one
 * consistent moment, files posted after the scan started are left for the next scan. Otherwise a newer file could
 * overtake an older one that was missed.
 */
export interface Scanner {
  /** fills the queue, unless a directory needs another round to be listed */
  fillQueue(inbox: InboxState): void
  /** the kernel may have dropped events: scan every directory before taking the file of a single event again */
  distrustEvents(): void
}

/** Above this many files, events cost more than they tell, so the watcher is closed. */
const crowdedAbove = 64
/** A scan stops here. In a larger directory the oldest files are not found for certain. */
const namesPerScan = 100_000
/** A large directory is scanned for at most a tenth of the time. */
const pauseFactor = 10
const maxPauseMs = 10_000
/** An event never takes this long to arrive. */
const missedEventMs = 100

export function createScanner(options: {
  waitingLimit: number
  now(): number
  timers: Timers
  reportDirectory: DirectoryReporter
  handles: DirectoryHandles
  polling: Polling
  watchers: Watchers
  directoryHealth: DirectoryHealth
  makeReady(inbox: InboxState): void
  listed(): void
}): Scanner {
  const {
    waitingLimit,
    now,
    timers,
    reportDirectory,
    handles,
    polling,
    watchers,
    directoryHealth,
    makeReady,
  } = options
  const removeAbandoned = createAbandonedFileCleanup({ now, reportDirectory })
  let listingCount = 0
  /** listings up to this number may be missing events */
  let distrustedUpTo = 0

  const fillQueue = (inbox: InboxState) => {
    const single = fileOfSingleEvent(inbox)
    if (single) {
      inbox.queue = [single]
      inbox.head = 0
      return
    }
    inbox.scanStartedAt ??= now()
    const startedAt = inbox.scanStartedAt
    if (inbox.backlog) inbox.backlog.scanStartedAt ??= startedAt
    if (!scanSubdirectories(inbox)) return
    const listed = entriesOf(inbox)
    const entries = isConsistent(inbox) ? listed : postedBefore(startedAt, listed)
    if (inbox.backlog) {
      const { scanStartedAt = startedAt } = inbox.backlog
      inbox.backlog.caughtUp = entries.length === listed.length || startedAt > scanStartedAt
    }
    inbox.scanStartedAt = undefined
    for (const subdirectory of inbox.subdirectories) subdirectory.listing = undefined
    if (inbox.overflow || entries.length > waitingLimit) {
      inbox.overflow = { entries: entries.splice(waitingLimit), count: inbox.overflow?.count ?? 0 }
    }
    inbox.queue = entries
    inbox.head = 0
    polling.scanned(inbox, listed.length > 0)
    options.listed()
  }

  /** The file of the only event, if nothing else can be waiting. The directory still gets its scan afterwards. */
  const fileOfSingleEvent = (inbox: InboxState): Entry | undefined => {
    if (inbox.polling || inbox.overflow || inbox.scanStartedAt !== undefined) return undefined
    let source: Subdirectory | undefined
    for (const subdirectory of inbox.subdirectories) {
      if (subdirectory.watcher && subdirectory.listingNumber <= distrustedUpTo) requestScan(subdirectory)
      if (subdirectory.events === 'single') {
        if (source) return undefined
        source = subdirectory
      } else if (subdirectory.scanRequested) return undefined
    }
    if (!source) return undefined
    source.events = 'several'
    const name = source.lastEventName
    if (name === null || !isValidName(name) || !source.watcher || source.condition !== 'ok') return undefined
    const directory = handles.get(source)
    if (typeof directory === 'string' || directory.inode !== source.inode) return undefined
    return { subdirectory: source, name, time: 0 }
  }

  /**
   * Scans the directories that are due, then the others if the order of files depends on them. Returns false while a
   * scan needs another round.
   */
  const scanSubdirectories = (inbox: InboxState): boolean => {
    for (const subdirectory of inbox.subdirectories) {
      if (!subdirectory.listing && isScanDue(subdirectory) && !scan(subdirectory)) return false
    }
    if (inbox.subdirectories.length === 1 || isExplainedByEvent(inbox)) return true
    for (const subdirectory of inbox.subdirectories) {
      if (!subdirectory.listing && mayScan(subdirectory) && !scan(subdirectory)) return false
    }
    return true
  }

  const mayScan = (subdirectory: Subdirectory) =>
    !directoryHealth.isFailing(subdirectory) && !isScanPaused(subdirectory)

  /** Whether the listings together show what was there at one moment. */
  const isConsistent = (inbox: InboxState): boolean => {
    if (!inbox.subdirectories.every(({ listing }) => !listing || isAtomic(listing))) return false
    if (inbox.subdirectories.length === 1 || isExplainedByEvent(inbox)) return true
    let last = 0
    for (const subdirectory of inbox.subdirectories)
      if (subdirectory.listing?.names.length) last = Math.max(last, subdirectory.listingNumber)
    return inbox.subdirectories.every(subdirectory => {
      if (!subdirectory.listing || subdirectory.listingNumber >= last) return true
      const directory = handles.get(subdirectory)
      if (typeof directory === 'string') return false
      try {
        return !isLarge(directory) && countPosted(directory) === subdirectory.listing.names.length
      } catch {
        // The directory became unreadable; the next scan reports it.
        return false
      }
    })
  }

  /** A name with a time in the future is its writer's fault and does not delay the file. */
  const postedBefore = (startedAt: number, entries: Entry[]): Entry[] => {
    const until = now()
    return entries.filter(({ time, subdirectory }) => {
      if (time < startedAt || time > until) return true
      requestScan(subdirectory)
      return false
    })
  }

  /**
   * Returns false if the scan needs another round. The result stays in `listing` until the whole inbox is scanned.
   */
  const scan = (subdirectory: Subdirectory): boolean => {
    const directory = handles.get(subdirectory)
    if (typeof directory === 'string') return scanFailed(subdirectory, directory)
    let current: DirectoryScan
    let listing: Listing | undefined
    try {
      current = subdirectory.scan ??= beginScan(subdirectory, directory)
      listing = current.next(directory)
    } catch (error) {
      return scanFailed(subdirectory, errorCode(error) === 'ENOENT' ? 'missing' : 'unreadable')
    }
    if (!listing) return false
    subdirectory.scan = undefined
    if (current.tookMs > 0) pauseScans(subdirectory, current.tookMs)
    subdirectory.listing = listing
    subdirectory.listingNumber = ++listingCount
    applyListing(subdirectory, directory, listing)
    return true
  }

  const scanFailed = (subdirectory: Subdirectory, why: OpenFailure): true => {
    directoryHealth.cannotRead(subdirectory, why)
    watchers.release(subdirectory)
    return true
  }

  /** The watcher starts before the listing, so that no file can arrive unnoticed between the two. */
  const beginScan = (subdirectory: Subdirectory, directory: DirectoryHandle) => {
    subdirectory.scanRequested = false
    if (subdirectory.health) subdirectory.health.claimFailed = false
    if (directory.inode !== subdirectory.inode) {
      if (subdirectory.inode !== 0 && subdirectory.condition !== 'missing') {
        reportDirectory(
          'replaced',
          subdirectory,
          'was replaced by another directory, which is watched from now on',
        )
      }
      watchers.unwatch(subdirectory)
      subdirectory.inode = directory.inode
    }
    directoryHealth.canRead(subdirectory)
    if (!subdirectory.watcher && !subdirectory.crowded) watchers.watch(subdirectory, directory)
    return startScan(directory, Math.max(namesPerScan, 2 * waitingLimit))
  }

  const pauseScans = (subdirectory: Subdirectory, tookMs: number) => {
    const health = healthOf(subdirectory)
    health.scanPaused = true
    timers.later(Math.min(maxPauseMs, tookMs * pauseFactor), () => {
      health.scanPaused = false
      if (subdirectory.scanRequested) makeReady(subdirectory.inbox)
    })
  }

  const applyListing = (
    subdirectory: Subdirectory,
    directory: DirectoryHandle,
    { names, others }: Listing,
  ) => {
    const { events, lastEventName, changedWithoutEvent } = subdirectory
    subdirectory.events = 'none'
    subdirectory.changedWithoutEvent = false
    // The next sweep can skip the directory. A very recent mtime is not stored, because another change at the same
    // moment would have the same mtime.
    if (now() - directory.mtimeMs > settledMs) subdirectory.sweptMtimeMs = directory.mtimeMs
    if (names.length > crowdedAbove) {
      watchers.unwatch(subdirectory)
      subdirectory.crowded = true
      requestScan(subdirectory)
    } else if (subdirectory.crowded) {
      subdirectory.crowded = false
      requestScan(subdirectory)
    }
    if (
      changedWithoutEvent &&
      events === 'none' &&
      names.slice(0, crowdedAbove).some(name => isOverdue(directory, name))
    ) {
      polling.missedEvent(subdirectory)
    }
    // Our own claims cause events too. Only an event for a file that is still there proves that events of the writer
    // arrive.
    if (subdirectory.inbox.polling?.demoted && lastEventName !== null && names.includes(lastEventName)) {
      polling.receivedEvent(subdirectory.inbox)
    }
    if (others.length > 0) removeAbandoned(subdirectory, directory, others)
  }

  /** Whether the event of this file should have arrived by now. Uses ctime, because the writer cannot set it. */
  const isOverdue = (directory: DirectoryHandle, name: string | Buffer): boolean => {
    try {
      return now() - lstatSync(within(directory, name)).ctimeMs >= missedEventMs
    } catch {
      // The writer removed the file, or it cannot be read. Neither says anything about events.
      return false
    }
  }

  return {
    fillQueue,
    distrustEvents() {
      distrustedUpTo = listingCount
    },
  }
}

/**
 * True if there is no file, or only the file of the last event. Events arrive in order, so nothing older can be
 * missing.
 */
const isExplainedByEvent = (inbox: InboxState): boolean => {
  let count = 0
  for (const { listing, lastEventName } of inbox.subdirectories) {
    if (!listing) continue
    count += listing.names.length
    if (count > 1 || (listing.names.length === 1 && listing.names[0] !== lastEventName)) return false
  }
  return true
}

const entriesOf = (inbox: InboxState): Entry[] => {
  const entries: Entry[] = []
  let sorted = true
  let last = Number.NEGATIVE_INFINITY
  for (const subdirectory of inbox.subdirectories) {
    if (!subdirectory.listing) continue
    const { names, times } = subdirectory.listing
    for (let i = 0; i < names.length; i++) {
      const name = names[i]
      const time = times[i]
      if (name === undefined || time === undefined) continue
      if (time <= last) sorted = false
      last = time
      entries.push({ subdirectory, name, time })
    }
  }
  return sorted ? entries : entries.sort(compareEntries)
}

/** Sorts names of the same millisecond by their sequence number. Names without one are sorted after the claim. */
const compareEntries = (a: Entry, b: Entry): number =>
  a.time - b.time || (String(a.name) < String(b.name) ? -1 : 1)
