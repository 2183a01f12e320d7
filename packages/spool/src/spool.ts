import { createClaims } from './claims.ts'
import type { Consume } from './delivery.ts'
import { createDirectoryHandles } from './directory-handles.ts'
import { createDirectoryHealth } from './directory-health.ts'
import { createDirectoryReporter } from './directory-reporter.ts'
import { createInboxState, type InboxState, requestScan } from './inbox-state.ts'
import { isValidInbox, isValidSubdirectory } from './names.ts'
import { createOverflow } from './overflow.ts'
import { createPartialFiles } from './partial-files.ts'
import { createPolling } from './polling.ts'
import { removeOldProbes } from './probe.ts'
import { createRemover } from './remove.ts'
import { createScanner } from './scanner.ts'
import { createScheduler } from './scheduler.ts'
import { createSweeper } from './sweeper.ts'
import { createTimers } from './timers.ts'
import type { ClaimedFile, Inbox, Report, WatchMode } from './types.ts'
import { createWatchers } from './watchers.ts'

/**
 * The reading side: many inboxes, one consumer. This file connects the parts, in the order a file passes them:
 *
 *   notice    watchers.ts (events), polling.ts (where events are missing) and sweeper.ts (a safety net) request scans
 *   scan      scanner.ts lists directories and orders their files; directory-health.ts retries those that fail
 *   schedule  scheduler.ts picks the next inbox and takes its share of files; overflow.ts removes files over the limit
 *   claim     claims.ts moves each file out of the writer's reach and reads it
 *   consume   delivery.ts hands a batch to the consumer, which gives each file back: `discard` or `postpone`
 *   finish    remove.ts removes discarded files; partial-files.ts reads postponed ones again
 *
 * The spool itself is created → started → stopped. Before `start` it only collects inboxes; after `stop` nothing
 * happens.
 */
export interface SpoolOptions {
  /** where claimed files are kept: on the same file system as the inboxes, and mounted into no sandbox */
  claimed: string
  /** larger than every `seq` that was ever used */
  firstSeq: number
  /** bytes; a larger file is claimed but not read */
  fileLimit: number
  /** files waiting per inbox; the newest beyond it are removed unread and counted */
  waitingLimit: number
  /** `auto`: use file events if a test shows that they arrive; `off`: poll */
  events: 'auto' | 'off'
  /** without events, an inbox is polled this often after a file came; default 5 */
  pollMinMs?: number
  /** and at least this often while nothing comes; default 1000 */
  pollMaxMs?: number
  /** every directory is checked for changes this often, whatever the events say; default 60,000 */
  sweepMs?: number
  /** how long after its last change a file may be half-written, five times as long at most; default 2000 */
  graceMs?: number
  /**
   * While files come less than this apart, the process does not sleep between them: waking up with cold CPU caches
   * takes longer than handling a file. 0 means always sleep; default 10.
   */
  spinMs?: number
  /** how many files of the inbox may be taken now, and when to ask again if none; default: no limit */
  allowance?(inbox: string): { files: number; retryMs: number }
  report(report: Report): void
  /** called at each step with its name; tests kill the process there */
  fault?(step: 'listed' | 'claimed' | 'gathered' | 'discarding'): void
  now?(): number
}

export interface Spool {
  /**
   * Begins to hand files over, and resolves when everything that was waiting is consumed, or when `stop` is called.
   * `consume` gets a batch: files of one inbox in order, a share from each inbox. It gives each file back, now or later,
   * with `discard` (done) or `postpone` (looks half-written). If it throws, the whole batch is handed over again.
   */
  start(consume: Consume): Promise<void>
  add(inbox: Inbox): void
  remove(inbox: string): void
  /** the file looks half-written: it comes again when it has changed or its grace time is over */
  postpone(file: ClaimedFile): void
  /** the files are done and can be removed */
  discard(files: readonly ClaimedFile[]): void
  /**
   * processes a file of ours as if the inbox had posted it; returns an error code if it cannot be moved (`EAGAIN`:
   * not started yet)
   */
  adopt(path: string, inbox: string, subdirectory: string, name: string): string | undefined
  /** scans the inbox now, without waiting for an event */
  scan(inbox: string): void
  mode(inbox: string): WatchMode | undefined
  /**
   * calls back when everything now in the inbox is consumed, including files that look half-written; never after
   * `stop`
   */
  whenDrained(inbox: string, then: () => void): void
  /** whether files are known to be waiting */
  busy(): boolean
  /** resolves when the current batch is consumed */
  stop(): Promise<void>
}

export function createSpool(options: SpoolOptions): Spool {
  const inboxes = new Map<string, InboxState>()
  let started = false
  let stopped = false
  const { claims, remover, timers, polling, watchers, sweeper, partialFiles, scheduler, makeReady, fault } =
    connectParts(options, { inboxes, isStarted: () => started, isStopped: () => stopped })

  return {
    async start(consume) {
      scheduler.addPriority(claims.recover())
      removeOldProbes(options.claimed)
      await watchers.probe()
      if (stopped) return
      started = true
      sweeper.start()
      await scheduler.start(consume)
    },
    add(inbox) {
      if (inboxes.has(inbox.id)) return
      if (!isValidInbox(inbox.id) || !inbox.subdirectories.every(isValidSubdirectory)) {
        throw new RangeError(
          `${JSON.stringify(inbox.id)} or one of its subdirectories is not a valid name: use letters, digits, - and _`,
        )
      }
      const state = createInboxState(inbox)
      inboxes.set(inbox.id, state)
      scheduler.add(state)
    },
    remove(id) {
      const inbox = inboxes.get(id)
      if (!inbox) return
      scheduler.remove(inbox)
      for (const subdirectory of inbox.subdirectories) watchers.release(subdirectory)
      polling.forget(inbox)
      inboxes.delete(id)
    },
    postpone: file => partialFiles.add(file, inboxes.get(file.inbox)),
    discard(files) {
      for (const file of files) partialFiles.remove(file)
      fault('discarding')
      remover.remove(files.map(file => file.path))
    },
    adopt(path, inbox, subdirectory, name) {
      // Until the claims of an earlier process are known, the new `seq` could be one of theirs.
      if (!started) return 'EAGAIN'
      const file = claims.adopt(path, inbox, subdirectory, name)
      if (typeof file === 'string') return file
      scheduler.addPriority([file])
      return undefined
    },
    scan(id) {
      const inbox = inboxes.get(id)
      if (!inbox) return
      for (const subdirectory of inbox.subdirectories) requestScan(subdirectory)
      makeReady(inbox)
    },
    mode(id) {
      const inbox = inboxes.get(id)
      return inbox && (inbox.polling ? 'polling' : 'events')
    },
    whenDrained(id, then) {
      const inbox = inboxes.get(id)
      if (inbox) scheduler.whenDrained(inbox, then)
      else then()
    },
    busy: scheduler.isBusy,
    async stop() {
      stopped = true
      sweeper.stop()
      for (const inbox of inboxes.values())
        for (const subdirectory of inbox.subdirectories) watchers.release(subdirectory)
      await scheduler.stop()
      timers.cancelAll()
      await remover.close()
    },
  }
}

/** What the parts have to know of the spool they belong to. */
interface Life {
  inboxes: ReadonlyMap<string, InboxState>
  isStarted(): boolean
  isStopped(): boolean
}

function connectParts(options: SpoolOptions, { inboxes, isStarted, isStopped }: Life) {
  const { report, waitingLimit, pollMinMs = 5, pollMaxMs = 1000, sweepMs = 60_000 } = options
  const { graceMs = 2000, spinMs = 10, now = Date.now } = options
  // Durations use a clock that cannot be set back.
  const clock = () => performance.now()
  const fault = options.fault ?? (() => {})

  const claims = createClaims({
    directory: options.claimed,
    fileLimit: options.fileLimit,
    firstSeq: options.firstSeq,
  })
  const remover = createRemover(message => report({ kind: 'not_removed', message }))
  const timers = createTimers(isStopped)
  const reportDirectory = createDirectoryReporter(report)
  const handles = createDirectoryHandles()
  const makeReady = (inbox: InboxState) => scheduler.makeReady(inbox)
  const directoryHealth = createDirectoryHealth({ reportDirectory, clock })
  const polling = createPolling({
    minMs: pollMinMs,
    maxMs: pollMaxMs,
    clock,
    timers,
    reportDirectory,
    report,
    isStarted,
    isBackingOff: directoryHealth.isBackingOff,
    makeReady,
  })
  const watchers = createWatchers({
    events: options.events,
    claimed: options.claimed,
    clock,
    isStopped,
    reportDirectory,
    handles,
    polling,
    directoryHealth,
    makeReady,
    burst: () => scanner.distrustEvents(),
  })
  const sweeper = createSweeper({
    sweepMs,
    now,
    inboxes: () => inboxes.values(),
    watchers,
    handles,
    directoryHealth,
    makeReady,
  })
  const scanner = createScanner({
    waitingLimit,
    now,
    timers,
    reportDirectory,
    handles,
    polling,
    watchers,
    directoryHealth,
    makeReady,
    listed: () => fault('listed'),
  })
  const partialFiles = createPartialFiles({
    graceMs,
    now,
    clock,
    timers,
    claims,
    due: file => scheduler.addPriority([file]),
  })
  const scheduler = createScheduler({
    spinMs,
    now,
    isStopped,
    timers,
    claims,
    handles,
    directoryHealth,
    scanner,
    overflow: createOverflow({ waitingLimit, handles, directoryHealth, report }),
    partialFiles,
    allowance: options.allowance,
    report,
    fault,
  })

  return { claims, remover, timers, polling, watchers, sweeper, partialFiles, scheduler, makeReady, fault }
}
