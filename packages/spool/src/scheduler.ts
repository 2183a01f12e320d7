import type { Claims } from './claims.ts'
import { type Consume, createDelivery } from './delivery.ts'
import type { DirectoryHandles } from './directory-handles.ts'
import type { DirectoryHealth } from './directory-health.ts'
import { createFairShare } from './fair-share.ts'
import { emptyQueue, type InboxState, isScanDue, isScanning, requestScan } from './inbox-state.ts'
import { compareFiles, sequenceOfName } from './names.ts'
import type { Overflow } from './overflow.ts'
import type { PartialFiles } from './partial-files.ts'
import type { Scanner } from './scanner.ts'
import type { Timers } from './timers.ts'
import type { ClaimedFile, Report } from './types.ts'

/**
 * Decides which inbox is served next, so that a busy inbox cannot delay the others.
 *
 *   idle       nothing to do
 *              → ready      an event arrived, a poll or sweep is due
 *   ready      in the ready queue; the next round serves it
 *              → ready      it has more files than its share: back to the end of the queue
 *              → throttled  the consumer's `allowance` is used up
 *              → idle       scanned, and nothing is left
 *   throttled  → ready      the time that `allowance` named has passed
 *   removed    final
 *
 * A round takes a share of files from each ready inbox, up to one batch, claims and reads them, and hands the batch
 * to the consumer (delivery.ts). The next round starts when the consumer is done and the event loop ran once, so that
 * events of other inboxes are seen in between.
 */
export interface Scheduler {
  /** adds a new inbox; `start` waits until its existing files are delivered */
  add(inbox: InboxState): void
  remove(inbox: InboxState): void
  makeReady(inbox: InboxState): void
  /** files that are already claimed and go before all others: recovered, adopted, or due for another read */
  addPriority(files: readonly ClaimedFile[]): void
  /** resolves when everything that was waiting has been delivered */
  start(consume: Consume): Promise<void>
  isBusy(): boolean
  /**
   * calls back when everything now in the inbox is consumed, including files that look half-written; never after
   * `stop`
   */
  whenDrained(inbox: InboxState, then: () => void): void
  /** resolves when the current batch is consumed */
  stop(): Promise<void>
}

const batchLimit = 512
/** After a batch larger than this, the next claims go to another bucket (see claims.ts). */
const bucketLimit = 32
/** Batches are held in memory, and large files take longer, so bytes are limited too. */
const shareBytes = 512 * 1024
const batchBytes = 4 * 1024 * 1024
/** The event loop gets a chance to run after this many inboxes. */
const inboxesPerRound = 256
/**
 * Files of the same millisecond are sorted by mtime, which needs all of them in one batch. A share may grow by this
 * many.
 */
const tieLimit = 16
const maxThrottledMs = 60_000

export function createScheduler(options: {
  spinMs: number
  now(): number
  isStopped(): boolean
  timers: Timers
  claims: Claims
  handles: DirectoryHandles
  directoryHealth: DirectoryHealth
  scanner: Scanner
  overflow: Overflow
  partialFiles: PartialFiles
  allowance: ((inbox: string) => { files: number; retryMs: number }) | undefined
  report(report: Report): void
  fault(step: 'claimed' | 'gathered'): void
}): Scheduler {
  const {
    spinMs,
    now,
    isStopped,
    timers,
    claims,
    handles,
    directoryHealth,
    scanner,
    overflow,
    partialFiles,
  } = options
  const { allowance, fault } = options
  const ready = createReadyQueue()
  const awake = createSpinner(spinMs, isStopped)
  const fairShare = createFairShare()
  const drainListeners = new Map<InboxState, (() => void)[]>()
  let priorityFiles: ClaimedFile[] = []
  let isScheduled = false
  /** how many inboxes still have a backlog; `start` waits for zero */
  let backlogCount = 0
  let started: { consume: Consume; resolve(): void } | undefined

  const schedule = () => {
    if (isScheduled || !started || !delivery.isFree() || isStopped()) return
    isScheduled = true
    setImmediate(runRound)
  }

  const makeReady = (inbox: InboxState) => {
    if (inbox.ready || inbox.throttled || inbox.removed) return
    inbox.ready = true
    ready.add(inbox)
    schedule()
  }

  const runRound = () => {
    isScheduled = false
    if (isStopped() || !started || !delivery.isFree()) return
    const startedAt = performance.now()
    const batch = delivery.kept() ?? collectBatch()
    if (batch.length === 0) return afterRound()
    fault('gathered')
    delivery.handOver(batch, startedAt, started.consume)
    awake.fileCame()
  }

  const afterRound = () => {
    const isKept = delivery.kept() !== undefined
    if (backlogCount === 0 && priorityFiles.length === 0 && !isKept) started?.resolve()
    for (const inbox of drainListeners.keys()) if (isDrained(inbox)) notifyDrained(inbox)
    if ((ready.isAny() || priorityFiles.length > 0) && !isKept) schedule()
  }

  const delivery = createDelivery({
    later: timers.later,
    report: options.report,
    consumed(batch, tookMs) {
      if (batch.length > bucketLimit) claims.nextBucket()
      fairShare.record(batch.length, tookMs)
    },
    failed(batch) {
      for (const file of batch) {
        file.recovered = true
        // The file is part of the batch that is handed over again, so it must not come a second time.
        partialFiles.remove(file)
      }
    },
    freed: afterRound,
    retry: schedule,
  })

  /** True if everything is scanned, claimed and consumed. A directory that cannot be read does not count. */
  const isDrained = (inbox: InboxState): boolean =>
    !inbox.ready &&
    !inbox.throttled &&
    !inbox.overflow &&
    inbox.partialCount === 0 &&
    inbox.head === inbox.queue.length &&
    !inbox.subdirectories.some(subdirectory => subdirectory.scanRequested || isScanning(subdirectory)) &&
    !delivery.hasFiles() &&
    !priorityFiles.some(file => file.inbox === inbox.id)

  const notifyDrained = (inbox: InboxState) => {
    const listeners = drainListeners.get(inbox) ?? []
    drainListeners.delete(inbox)
    for (const then of listeners) then()
  }

  const collectBatch = (): ClaimedFile[] => {
    const batch: ClaimedFile[] = []
    let bytes = priorityFiles.length > 0 ? takePriorityFiles(batch) : 0
    const isFull = () => batch.length >= batchLimit || bytes >= batchBytes
    if (isFull()) return batch
    for (const inbox of ready.round()) {
      bytes += serveInbox(inbox, batch)
      handles.releaseIdle()
      if (isFull()) break
    }
    return batch
  }

  const takePriorityFiles = (batch: ClaimedFile[]): number => {
    let bytes = 0
    while (batch.length < priorityFiles.length && batch.length < batchLimit && bytes < batchBytes) {
      const file = priorityFiles[batch.length]
      if (!file) break
      const reread = partialFiles.reread(file)
      bytes += reread.text.length
      batch.push(reread)
    }
    priorityFiles = priorityFiles.slice(batch.length)
    return bytes
  }

  const serveInbox = (inbox: InboxState, batch: ClaimedFile[]): number => {
    inbox.ready = false
    if (inbox.removed) return 0
    const allowed = allowance?.(inbox.id)
    if (allowed && allowed.files <= 0) {
      throttle(inbox, allowed.retryMs)
      return 0
    }
    if (inbox.overflow) overflow.removeSome(inbox)
    if (inbox.head === inbox.queue.length) scanner.fillQueue(inbox)
    const bytes = claimFiles(
      inbox,
      batch,
      Math.min(fairShare.size(), allowed?.files ?? Number.POSITIVE_INFINITY),
    )
    if (inbox.overflow) overflow.reportRemoved(inbox)
    if (inbox.head === inbox.queue.length && !inbox.subdirectories.some(isScanning)) queueEmptied(inbox)
    if (inbox.head < inbox.queue.length || inbox.overflow || inbox.subdirectories.some(isScanDue)) {
      inbox.ready = true
      ready.addUnfinished(inbox)
    }
    return bytes
  }

  const throttle = (inbox: InboxState, ms: number) => {
    inbox.throttled = true
    backlogDone(inbox)
    timers.later(Math.min(maxThrottledMs, Math.max(1, ms)), () => {
      inbox.throttled = false
      makeReady(inbox)
    })
  }

  const queueEmptied = (inbox: InboxState) => {
    for (const subdirectory of inbox.subdirectories) {
      if (subdirectory.condition === 'unclaimable' && !subdirectory.health?.claimFailed)
        directoryHealth.canClaim(subdirectory)
    }
    // New files do not count: otherwise a flood would keep `start` from resolving.
    if (inbox.backlog?.caughtUp) backlogDone(inbox)
  }

  const backlogDone = (inbox: InboxState) => {
    if (!inbox.backlog) return
    inbox.backlog = undefined
    backlogCount--
  }

  const claimFiles = (inbox: InboxState, batch: ClaimedFile[], count: number): number => {
    const { queue } = inbox
    const from = batch.length
    const time = now()
    let ordered = true
    let bytes = 0
    const end = endOfShare(inbox, count)
    while (inbox.head < end && bytes < shareBytes) {
      const entry = queue[inbox.head]
      if (!entry) break
      queue[inbox.head++] = undefined
      const { subdirectory, name } = entry
      const directory = handles.get(subdirectory)
      if (typeof directory === 'string') {
        requestScan(subdirectory)
        continue
      }
      const file = claims.claim(directory, inbox.id, subdirectory.name, name)
      if (typeof file === 'string') {
        // ENOENT: the writer removed the file.
        if (file !== 'ENOENT') directoryHealth.cannotClaim(subdirectory, file)
        continue
      }
      fault('claimed')
      if (subdirectory.condition === 'unclaimable') directoryHealth.claimedSome(subdirectory)
      bytes += file.text.length
      file.mayGrow = partialFiles.mayGrow(file, inbox, time)
      const previous = batch.at(-1)
      if (batch.length > from && previous && compareFiles(previous, file) > 0) ordered = false
      batch.push(file)
    }
    if (!ordered) {
      const sorted = batch.splice(from).sort(compareFiles)
      batch.push(...sorted)
    }
    if (inbox.head === queue.length && queue.length > 0) emptyQueue(inbox)
    return bytes
  }

  return {
    add(inbox) {
      backlogCount++
      makeReady(inbox)
    },
    remove(inbox) {
      backlogDone(inbox)
      inbox.removed = true
      emptyQueue(inbox)
      notifyDrained(inbox)
    },
    makeReady,
    addPriority(files) {
      // Not `push(...files)`: there may be more files than a call can have arguments.
      for (const file of files) priorityFiles.push(file)
      schedule()
    },
    start: consume =>
      new Promise<void>(resolve => {
        started = { consume, resolve }
        if (priorityFiles.length > 0 || ready.isAny()) schedule()
        else afterRound()
      }),
    isBusy: () => ready.isAny() || priorityFiles.length > 0 || delivery.kept() !== undefined,
    whenDrained(inbox, then) {
      drainListeners.set(inbox, [...(drainListeners.get(inbox) ?? []), then])
      for (const subdirectory of inbox.subdirectories) requestScan(subdirectory)
      makeReady(inbox)
    },
    async stop() {
      drainListeners.clear()
      started?.resolve()
      await delivery.settled()
    },
  }
}

/**
 * Where the share ends. It avoids splitting files of the same millisecond that have no sequence number, because only
 * files in the same batch can be sorted by mtime.
 */
const endOfShare = ({ queue, head }: InboxState, count: number): number => {
  const end = head + count
  if (end >= queue.length) return queue.length
  const isSequenced = (i: number) => sequenceOfName(String(queue[i]?.name)) !== undefined
  const isTie = (i: number) =>
    queue[i]?.time === queue[i - 1]?.time && !(isSequenced(i) && isSequenced(i - 1))
  let shorter = end
  while (shorter > head && isTie(shorter)) shorter--
  if (shorter > head) return shorter
  let longer = end
  while (longer < queue.length && longer < end + tieLimit && isTie(longer)) longer++
  return longer
}

/** Inboxes with something to do, in the order in which they are served. */
function createReadyQueue() {
  let queue: InboxState[] = []
  /** inboxes before `head` were already served */
  let head = 0
  /** served in this round, with files left: they go to the end */
  let unfinished: InboxState[] = []

  const trim = () => {
    if (head < queue.length && head < inboxesPerRound * 8) return
    queue = head < queue.length ? queue.slice(head) : []
    head = 0
  }
  return {
    add: (inbox: InboxState) => void queue.push(inbox),
    addUnfinished: (inbox: InboxState) => void unfinished.push(inbox),
    isAny: () => queue.length > head || unfinished.length > 0,
    /** takes inboxes for one round, for as long as the caller goes on */
    *round(): Generator<InboxState> {
      for (const inbox of unfinished) queue.push(inbox)
      unfinished = []
      const end = Math.min(queue.length, head + inboxesPerRound)
      try {
        while (head < end) {
          const inbox = queue[head++]
          if (inbox) yield inbox
        }
      } finally {
        trim()
      }
    },
  }
}

/** Waking up takes longer than handling a file, so the process spins while files come less than `spinMs` apart. */
function createSpinner(spinMs: number, isStopped: () => boolean) {
  let lastFileAt = Number.NEGATIVE_INFINITY
  let isSpinning = false
  const spin = () => {
    isSpinning = !isStopped() && performance.now() - lastFileAt < spinMs
    if (isSpinning) setImmediate(spin)
  }
  return {
    fileCame() {
      const time = performance.now()
      const isClose = time - lastFileAt < spinMs
      lastFileAt = time
      if (!isClose || isSpinning) return
      isSpinning = true
      setImmediate(spin)
    },
  }
}
