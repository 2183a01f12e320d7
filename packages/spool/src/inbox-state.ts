import type { DirectoryHandle, OpenFailure } from './directory.ts'
import type { Watcher } from './fs-watch.ts'
import type { DirectoryScan, Listing } from './listing.ts'
import type { PollInterval } from './poll-interval.ts'
import type { Inbox } from './types.ts'

/**
 * What the spool knows about one directory of an inbox. There may be tens of thousands, so state that only a few of
 * them need is kept in `health`.
 */
export interface Subdirectory {
  readonly inbox: InboxState
  readonly name: string
  /** this directory never gets a watcher; only the sweeper checks it */
  readonly sweptOnly: boolean
  /** the inode at the last scan; a different one means that the directory was replaced */
  inode: number
  watcher: Watcher | undefined
  /** stays open between scans while the watcher would report a replacement */
  handle: DirectoryHandle | undefined
  condition: 'unseen' | 'ok' | 'unclaimable' | OpenFailure
  /** a scan is needed: set by an event, and by `requestScan` for every other reason */
  scanRequested: boolean
  /** events since the last scan; `single`: all were for `lastEventName`, and there is no other reason to scan */
  events: 'none' | 'single' | 'several'
  /** the file name of the last event; it may be a file that was posted or one that we claimed */
  lastEventName: string | null
  /** has so many files that its watcher was closed; it is scanned continuously until few are left */
  crowded: boolean
  /** the mtime at the last sweep; a different one means that something changed */
  sweptMtimeMs: number
  /** the sweeper saw a change that no event had reported */
  changedWithoutEvent: boolean
  /** a scan that needs more rounds */
  scan: DirectoryScan | undefined
  /** the finished scan, kept until the other directories of the inbox are scanned too */
  listing: Listing | undefined
  /** rises with every listing of any directory, so that listings can be compared by age */
  listingNumber: number
  /** when abandoned files were last removed; in minutes, because V8 stores small integers without an extra object */
  cleanedMinute: number
  health: HealthRecord | undefined
}

/** Problems that a directory had, and when to try again. */
export interface HealthRecord {
  /** a scan took long, so the next one has to wait */
  scanPaused: boolean
  /** a file could not be claimed since the last scan */
  claimFailed: boolean
  claimFailedAt: number
  retryAt: number
  retryMs: number
  /** the directory caused too many events and gets no watcher until then */
  watchPause: { until: number; ms: number } | undefined
}

export interface Entry {
  subdirectory: Subdirectory
  name: string | Buffer
  time: number
}

export interface InboxState {
  readonly id: string
  readonly path: string
  readonly subdirectories: readonly Subdirectory[]
  /** listed files in order, not yet claimed; entries before `head` are done and set to undefined */
  queue: (Entry | undefined)[]
  head: number
  overflow: OverflowFiles | undefined
  /** when the current scan started */
  scanStartedAt: number | undefined
  /** present until the files that were there when the inbox was added have been delivered */
  backlog: Backlog | undefined
  /** `ready`, `throttled` and `removed` are the states described in scheduler.ts */
  ready: boolean
  throttled: boolean
  removed: boolean
  /** files that the consumer postponed because they looked half-written */
  partialCount: number
  /** present while the inbox is polled */
  polling: PollState | undefined
}

/** Files beyond `waitingLimit`. */
interface OverflowFiles {
  /** still to be removed */
  entries: Entry[]
  /** removed, but not reported yet */
  count: number
}

interface Backlog {
  scanStartedAt: number | undefined
  /** everything that was there at the first scan has been listed */
  caughtUp: boolean
}

interface PollState {
  readonly interval: PollInterval
  at: number
  /** events are not trusted, because a file came without one */
  demoted: boolean
  goodEvents: number
}

export const firstRetryMs = 250

/** One empty array shared by all idle inboxes, to save memory. */
const noEntries: Entry[] = []

export function createInboxState({ id, path, subdirectories, sweptOnly = [] }: Inbox): InboxState {
  const inbox: InboxState & { subdirectories: readonly Subdirectory[] } = {
    id,
    path,
    subdirectories: [],
    queue: noEntries,
    head: 0,
    overflow: undefined,
    scanStartedAt: undefined,
    backlog: { scanStartedAt: undefined, caughtUp: false },
    ready: false,
    throttled: false,
    removed: false,
    partialCount: 0,
    polling: undefined,
  }
  inbox.subdirectories = subdirectories.map(name => createSubdirectory(inbox, name, sweptOnly.includes(name)))
  return inbox
}

const createSubdirectory = (inbox: InboxState, name: string, sweptOnly: boolean): Subdirectory => ({
  inbox,
  name,
  sweptOnly,
  inode: 0,
  watcher: undefined,
  handle: undefined,
  condition: 'unseen',
  scanRequested: true,
  events: 'none',
  lastEventName: null,
  crowded: false,
  sweptMtimeMs: 0,
  changedWithoutEvent: false,
  scan: undefined,
  listing: undefined,
  listingNumber: 0,
  cleanedMinute: 0,
  health: undefined,
})

export const pathOf = (subdirectory: Subdirectory): string =>
  `${subdirectory.inbox.path}/${subdirectory.name}`

export function healthOf(subdirectory: Subdirectory): HealthRecord {
  subdirectory.health ??= {
    scanPaused: false,
    claimFailed: false,
    claimFailedAt: 0,
    retryAt: 0,
    retryMs: firstRetryMs,
    watchPause: undefined,
  }
  return subdirectory.health
}

export function requestScan(subdirectory: Subdirectory): void {
  subdirectory.scanRequested = true
  if (subdirectory.events === 'single') subdirectory.events = 'several'
}

export const isScanning = (subdirectory: Subdirectory): boolean => subdirectory.scan !== undefined
export const isScanPaused = (subdirectory: Subdirectory): boolean => subdirectory.health?.scanPaused === true
export const isScanDue = (subdirectory: Subdirectory): boolean =>
  isScanning(subdirectory) || (subdirectory.scanRequested && !isScanPaused(subdirectory))

export function emptyQueue(inbox: InboxState): void {
  inbox.queue = noEntries
  inbox.head = 0
}
