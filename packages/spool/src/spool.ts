import { lstatSync, unlinkSync } from 'node:fs'
import { type Claims, createClaims } from './claims.ts'
import { errorCode, type PinFailure, type PinnedDirectory, pinDirectory, within } from './directory.ts'
import { createDoorbells } from './doorbell.ts'
import { createInboxState, type Drop, type Entry, type InboxState } from './drop.ts'
import { beginLook, countPosted, isLarge, isWhole, type Listing, type Look } from './listing.ts'
import { compareFiles, isValidDrop, isValidInbox, sequenceOfName } from './names.ts'
import { createPace } from './pace.ts'
import { deliversEvents, removeOldProbes } from './probe.ts'
import { createRemover } from './remove.ts'
import type { ClaimedFile, Inbox, Report, WatchMode } from './types.ts'

/**
 * The consumer's side of the spool: many inboxes, one consumer.
 *
 * An inbox is *quiet*, *ready* (in the line of those that have, or may have, files) or *parked* (over its allowance).
 *
 *   quiet  → ready   a bell rang, a poll or sweep is due, a directory changed
 *   ready  → ready   its turn gave some files and there are more: back to the end of the line, behind those that rang
 *                    meanwhile (promise 6)
 *   ready  → parked  the consumer allows it no more for now; → ready when the time it named has passed
 *   ready  → quiet   looked into, and nothing left
 *
 * A turn takes a share of files from each ready inbox, up to one batch, claims and reads them, and hands the batch
 * over. The next turn begins when the consumer is done with it and the event loop has been around once, so that
 * rings of other inboxes are heard in between. A batch the consumer fails on is held and given again.
 *
 * A look is not a moment: while one directory is listed, files come into another. What was posted after it began is
 * left for the next one wherever something posted before it could have been overlooked, so that the order stays.
 *
 * A directory has a bell (events), unless events do not reach it (then it is polled), or it is crowded: while files
 * come faster than they are taken, rings tell nothing new and cost a lot, so the bell comes down until it is calm.
 * Whatever the bells do, every directory is swept at long intervals.
 */
export interface SpoolOptions {
  /** where claimed files lie: outside every mount, on the file system of the inboxes */
  claimed: string
  /** larger than every number that was ever given to a claim */
  firstSeq: number
  /** bytes; a larger file is claimed but not read */
  fileLimit: number
  /** files waiting per inbox; the newest beyond it are thrown away and counted */
  waitingLimit: number
  events: 'auto' | 'off'
  pollMinMs?: number
  pollMaxMs?: number
  sweepMs?: number
  graceMs?: number
  /**
   * While files come less than this apart, the process does not sleep between them: waking up, with everything fallen
   * out of the processor's caches, takes longer than handling a file. 0: it always sleeps.
   */
  spinMs?: number
  /**
   * Takes a batch: files of one inbox in order, inboxes in turn. Each file has to be given back, now or later, with
   * `discard` (it is done with) or `wait` (it seems half-written). Throwing means that none of it was taken.
   */
  consume(files: readonly ClaimedFile[]): void | Promise<void>
  /** how many files of the inbox may be taken now, and when to ask again if none */
  allowance?(inbox: string): { files: number; retryMs: number }
  report(report: Report): void
  /** called at each step with its name; tests end the process there */
  fault?(step: 'listed' | 'claimed' | 'gathered' | 'discarding'): void
  now?(): number
}

export interface Spool {
  /** resolves when everything that was waiting has been consumed, or `stop` was called */
  start(): Promise<void>
  add(inbox: Inbox): void
  remove(inbox: string): void
  wait(file: ClaimedFile): void
  discard(files: readonly ClaimedFile[]): void
  /** has a file of ours handled as if the inbox had posted it; an error code if it cannot be moved, or not yet */
  adopt(path: string, inbox: string, drop: string, name: string): string | undefined
  /** look now, whatever the bells say */
  look(inbox: string): void
  mode(inbox: string): WatchMode | undefined
  /** whether files are known to be waiting */
  busy(): boolean
  /** resolves when the batch that is being consumed has been */
  stop(): Promise<void>
}

const share = 32
const batchLimit = 512
/** Files are read into memory to be handed over, and large ones take longer. */
const shareBytes = 512 * 1024
const batchBytes = 4 * 1024 * 1024
/** So many are looked into before the event loop gets its turn. */
const inboxesPerTurn = 256
/** Files of one millisecond are sorted by their own time, which needs all of them in one turn. */
const tieLimit = 16
const crowd = 64
const tickMs = 250
const probeMs = 250
const settledMs = 1000
const maxGraceFactor = 5
const maxWaitingPerInbox = 1000
const litterAgeMs = 3_600_000
const shedPerTurn = 64
/** Handles kept between turns, out of the few thousand a process may have. */
const pinLimit = 32
const unclaimablePauseMs = 100
/** Of more than this the oldest are not looked for: what is seen first counts as waiting. */
const namesPerLook = 100_000
/** A large directory is looked into for a tenth of the time at most. */
const restFactor = 10
const maxRestMs = 10_000
/** Longer than an event takes. */
const missedAfterMs = 100
const minNoisyMs = 1000
const maxNoisyMs = 60_000
const maxParkedMs = 60_000

export function createSpool(options: SpoolOptions): Spool {
  const {
    report,
    consume,
    waitingLimit,
    pollMinMs = 5,
    pollMaxMs = 1000,
    sweepMs = 60_000,
    graceMs = 2000,
    spinMs = 10,
  } = options
  const now = options.now ?? Date.now
  // Pauses are counted by a clock that nobody sets back.
  const clock = () => performance.now()
  const fault = options.fault ?? (() => {})
  const claims: Claims = createClaims({
    directory: options.claimed,
    fileLimit: options.fileLimit,
    firstSeq: options.firstSeq,
  })
  const remover = createRemover(message => report({ kind: 'not_removed', message }))

  const inboxes = new Map<string, InboxState>()
  const polled = new Set<InboxState>()
  const pins = new Set<Drop>()
  const troubled = new Set<Drop>()
  const deviceDelivers = new Map<number, boolean | Promise<void>>()
  /** files handed back as half-written, until it is time to read them again */
  const waits = new Map<ClaimedFile['seq'], { timer: NodeJS.Timeout; inbox: InboxState | undefined }>()
  const firstWaited = new WeakMap<ClaimedFile, number>()
  let line: InboxState[] = []
  /** served in this turn, with more to come */
  let again: InboxState[] = []
  let late: ClaimedFile[] = []
  let held: readonly ClaimedFile[] | undefined
  let heldMs = 0
  let lastFileAt = Number.NEGATIVE_INFINITY
  let spinning = false
  let resting = false
  let started = false
  let stopped = false
  let consuming: Promise<void> | undefined
  let scheduled = false
  let freshLeft = 0
  let freshDone: (() => void) | undefined
  let claimedDevice: number | undefined
  let watchRefused = false
  let pollTimer: NodeJS.Timeout | undefined
  let pollTimerAt = Number.POSITIVE_INFINITY
  let tickTimer: NodeJS.Timeout | undefined
  let sweepOrder: InboxState[] = []
  let sweepAt = 0
  let listings = 0
  const timers = new Set<NodeJS.Timeout>()

  const later = (ms: number, work: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!stopped) work()
    }, ms)
    timers.add(timer)
    return timer
  }

  // --- turns -----------------------------------------------------------------------------------------------------

  const schedule = () => {
    if (scheduled || consuming || resting || stopped || !started) return
    scheduled = true
    setImmediate(turn)
  }

  const makeReady = (inbox: InboxState) => {
    if (inbox.ready || inbox.parked || inbox.removed) return
    inbox.ready = true
    line.push(inbox)
    schedule()
  }

  const isAnyReady = () => line.length > 0 || again.length > 0

  const turn = () => {
    scheduled = false
    if (stopped || consuming || resting) return
    const batch = held ?? gather()
    if (batch.length === 0) return afterTurn()
    fault('gathered')
    hand(batch)
    stayAwake()
  }

  /** One file alone is no reason to stay awake; two close together are, for as long as they were apart at most. */
  const stayAwake = () => {
    const time = performance.now()
    const isClose = time - lastFileAt < spinMs
    lastFileAt = time
    if (!isClose || spinning) return
    spinning = true
    const spin = () => {
      spinning = !stopped && performance.now() - lastFileAt < spinMs
      if (spinning) setImmediate(spin)
    }
    setImmediate(spin)
  }

  const hand = (batch: readonly ClaimedFile[]) => {
    const failed = (error: unknown) => {
      for (const file of batch) {
        file.recovered = true
        // It is in the batch that is given again, and must not come a second time.
        endWait(file)
      }
      held = batch
      resting = true
      heldMs = Math.min(5000, Math.max(50, heldMs * 2))
      const reason = error instanceof Error ? error.message : String(error)
      report({
        kind: 'consumer_failed',
        message: `A batch of ${batch.length} files could not be taken and is kept; it is tried again in ${heldMs} ms: ${reason}`,
      })
      later(heldMs, () => {
        resting = false
        schedule()
      })
    }
    const taken = () => {
      held = undefined
      heldMs = 0
      if (batch.length > share) claims.nextBucket()
      afterTurn()
    }
    try {
      const done = consume(batch)
      if (!done) return taken()
      consuming = done.then(taken, failed).finally(() => {
        consuming = undefined
        afterTurn()
      })
    } catch (error) {
      failed(error)
    }
  }

  const afterTurn = () => {
    if (freshLeft === 0 && late.length === 0 && !held) freshDone?.()
    if ((isAnyReady() || late.length > 0) && !held) schedule()
  }

  const gather = (): ClaimedFile[] => {
    const batch: ClaimedFile[] = []
    let bytes = 0
    while (batch.length < late.length && batch.length < batchLimit && bytes < batchBytes) {
      const file = late[batch.length]
      if (!file) break
      const again = readAgain(file)
      bytes += again.text.length
      batch.push(again)
    }
    late = late.slice(batch.length)
    const current = line.concat(again)
    line = []
    again = []
    let next = 0
    for (; next < current.length && next < inboxesPerTurn; next++) {
      const inbox = current[next]
      if (!inbox || batch.length >= batchLimit || bytes >= batchBytes) break
      bytes += takeTurn(inbox, batch)
      unpinIdle()
    }
    line = next < current.length ? [...current.slice(next), ...line] : line
    return batch
  }

  const takeTurn = (inbox: InboxState, batch: ClaimedFile[]): number => {
    inbox.ready = false
    if (inbox.removed) return 0
    const allowance = options.allowance?.(inbox.id)
    if (allowance && allowance.files <= 0) {
      inbox.parked = true
      settleFresh(inbox)
      later(Math.min(maxParkedMs, Math.max(1, allowance.retryMs)), () => {
        inbox.parked = false
        makeReady(inbox)
      })
      return 0
    }
    if (inbox.shed.length > 0) shedSome(inbox)
    if (inbox.head === inbox.queue.length) refill(inbox)
    const bytes = takeFiles(inbox, batch, Math.min(share, allowance?.files ?? share))
    if (inbox.shed.length === 0 && inbox.shedCount > 0) reportShed(inbox)
    if (inbox.head === inbox.queue.length && !inbox.drops.some(isBeingListed)) {
      for (const drop of inbox.drops)
        if (drop.condition === 'unclaimable' && !drop.failed) claimableAgain(drop)
      // Whatever comes in meanwhile, a flood must not keep `start` from ending.
      if (inbox.caughtUp) settleFresh(inbox)
    }
    if (inbox.head < inbox.queue.length || inbox.shed.length > 0 || inbox.drops.some(wantsLook)) {
      inbox.ready = true
      again.push(inbox)
    }
    return bytes
  }

  const settleFresh = (inbox: InboxState) => {
    if (!inbox.fresh) return
    inbox.fresh = false
    freshLeft--
  }

  /**
   * The directory's handle. It is kept while the directory's bell tells when it is moved, removed or replaced, so that
   * a lone file costs no opening; without a bell it is good for one turn.
   */
  const pinned = (drop: Drop): PinnedDirectory | PinFailure => {
    if (drop.pin) return drop.pin
    const pin = pinDirectory(drop.path)
    if (typeof pin === 'string') return pin
    drop.pin = pin
    pins.add(drop)
    return pin
  }

  const unpin = (drop: Drop) => {
    if (!drop.pin) return
    drop.pin.close()
    drop.pin = undefined
    pins.delete(drop)
  }

  const unpinIdle = () => {
    let over = pins.size - pinLimit
    for (const drop of pins) if (!drop.bell || over-- > 0) unpin(drop)
  }

  const takeFiles = (inbox: InboxState, batch: ClaimedFile[], count: number): number => {
    const { queue } = inbox
    const from = batch.length
    const time = now()
    let ordered = true
    let bytes = 0
    const end = endOfShare(inbox, count)
    while (inbox.head < end && bytes < shareBytes) {
      const entry = queue[inbox.head++]
      if (!entry) break
      const directory = pinned(entry.drop)
      if (typeof directory === 'string') {
        entry.drop.dirty = true
        continue
      }
      const file = claims.claim(directory, inbox.id, entry.drop.name, entry.name)
      if (typeof file === 'string') {
        if (file !== 'ENOENT') cannotClaim(entry.drop, file)
        continue
      }
      fault('claimed')
      // Only part of it is stuck: the rest need not wait as long.
      if (entry.drop.condition === 'unclaimable') retrySoon(entry.drop, tickMs)
      bytes += file.text.length
      file.mayGrow =
        file.problem === 'unreadable' ||
        (inbox.waiting < maxWaitingPerInbox && time - file.mtimeUs / 1000 < graceMs)
      const previous = batch.at(-1)
      if (batch.length > from && previous && compareFiles(previous, file) > 0) ordered = false
      batch.push(file)
    }
    if (!ordered) {
      const sorted = batch.splice(from).sort(compareFiles)
      batch.push(...sorted)
    }
    if (inbox.head === queue.length && queue.length > 0) {
      inbox.queue = []
      inbox.head = 0
    }
    return bytes
  }

  /** Where a share of so many ends: not among files of one millisecond whose names tell nothing more, if it can be. */
  const endOfShare = ({ queue, head }: InboxState, count: number): number => {
    const end = head + count
    const isTie = (i: number) =>
      queue[i]?.time === queue[i - 1]?.time && !(isSequenced(i) && isSequenced(i - 1))
    const isSequenced = (i: number) => sequenceOfName(String(queue[i]?.name)) !== undefined
    if (end >= queue.length) return queue.length
    let shorter = end
    while (shorter > head && isTie(shorter)) shorter--
    if (shorter > head) return shorter
    let longer = end
    while (longer < queue.length && longer < end + tieLimit && isTie(longer)) longer++
    return longer
  }

  // --- looking ---------------------------------------------------------------------------------------------------

  const isBeingListed = (drop: Drop) => drop.look !== undefined
  const mayLook = (drop: Drop) => !troubled.has(drop) && !drop.resting
  const wantsLook = (drop: Drop) => isBeingListed(drop) || (drop.dirty && !drop.resting)

  const refill = (inbox: InboxState) => {
    inbox.lookBegan ??= now()
    inbox.firstLookBegan ??= inbox.lookBegan
    if (!listDrops(inbox)) return
    const began = inbox.lookBegan
    const listed = entriesOf(inbox)
    const entries = isOneMoment(inbox) ? listed : postedBefore(began, listed)
    inbox.caughtUp = entries.length === listed.length || began > inbox.firstLookBegan
    inbox.lookBegan = undefined
    for (const drop of inbox.drops) drop.listing = undefined
    inbox.shed = entries.length > waitingLimit ? entries.splice(waitingLimit) : []
    inbox.queue = entries
    inbox.head = 0
    if (inbox.pace) {
      if (listed.length > 0) inbox.pace.found()
      else inbox.pace.foundNothing()
      pollIn(inbox, inbox.pace.everyMs)
    }
    fault('listed')
  }

  /** Lists the directories that rang, or are due, then the others where it matters; false while one is not through. */
  const listDrops = (inbox: InboxState): boolean => {
    for (const drop of inbox.drops) {
      if (!drop.listing && wantsLook(drop) && !lookInto(drop)) return false
    }
    if (inbox.drops.length === 1 || isAnnounced(inbox)) return true
    for (const drop of inbox.drops) {
      if (!drop.listing && mayLook(drop) && !lookInto(drop)) return false
    }
    return true
  }

  /** Nothing, or one file whose ring was heard: rings come in order, so whatever was posted before it has rung, too. */
  const isAnnounced = (inbox: InboxState): boolean => {
    let count = 0
    for (const { listing, rungFor } of inbox.drops) {
      if (!listing) continue
      count += listing.names.length
      if (count > 1 || (listing.names.length === 1 && listing.names[0] !== rungFor)) return false
    }
    return true
  }

  const entriesOf = (inbox: InboxState): Entry[] => {
    const entries: Entry[] = []
    let sorted = true
    let last = Number.NEGATIVE_INFINITY
    for (const drop of inbox.drops) {
      if (!drop.listing) continue
      const { names, times } = drop.listing
      for (let i = 0; i < names.length; i++) {
        const name = names[i]
        const time = times[i]
        if (name === undefined || time === undefined) continue
        if (time <= last) sorted = false
        last = time
        entries.push({ drop, name, time })
      }
    }
    return sorted ? entries : entries.sort(compareEntries)
  }

  /** Whether the listings together show what was there at one moment. */
  const isOneMoment = (inbox: InboxState): boolean => {
    if (!inbox.drops.every(({ listing }) => !listing || isWhole(listing))) return false
    if (inbox.drops.length === 1 || isAnnounced(inbox)) return true
    let last = 0
    for (const drop of inbox.drops) if (drop.listing?.names.length) last = Math.max(last, drop.listedAs)
    return inbox.drops.every(drop => {
      if (!drop.listing || drop.listedAs >= last) return true
      const directory = pinned(drop)
      if (typeof directory === 'string') return false
      try {
        return !isLarge(directory) && countPosted(directory) === drop.listing.names.length
      } catch {
        // It cannot be read any more: the next look says so.
        return false
      }
    })
  }

  /** A name from the future is its writer's own doing, and not waited for. */
  const postedBefore = (began: number, entries: Entry[]): Entry[] => {
    const until = now()
    return entries.filter(({ time, drop }) => {
      if (time < began || time > until) return true
      drop.dirty = true
      return false
    })
  }

  /** False while it is not through. What is found lies in `drop.listing` until all of the inbox is listed. */
  const lookInto = (drop: Drop): boolean => {
    const directory = pinned(drop)
    if (typeof directory === 'string') return introuble(drop, directory)
    let look: Look
    let listing: Listing | undefined
    try {
      look = drop.look ??= approach(drop, directory)
      listing = look.next(directory)
    } catch (error) {
      return introuble(drop, errorCode(error) === 'ENOENT' ? 'missing' : 'unreadable')
    }
    if (!listing) return false
    drop.look = undefined
    if (look.tookMs > 0) rest(drop, look.tookMs)
    drop.listing = listing
    drop.listedAs = ++listings
    understand(drop, directory, listing)
    return true
  }

  /** The bell is hung first, so that nothing comes unnoticed between the look and the bell (lesson 17). */
  const approach = (drop: Drop, directory: PinnedDirectory) => {
    drop.dirty = false
    drop.failed = false
    if (directory.inode !== drop.inode) {
      if (drop.inode !== 0 && drop.condition !== 'missing') {
        tell('replaced', drop, 'was replaced by another directory; it is watched anew')
      }
      takeDownBell(drop)
      drop.inode = directory.inode
    }
    if (drop.condition !== 'fine' && drop.condition !== 'unclaimable') {
      if (drop.condition !== 'unseen') tell('appeared', drop, 'can be read again')
      drop.condition = 'fine'
      drop.retryMs = tickMs
      troubled.delete(drop)
    }
    if (!drop.bell && !drop.crowded) hangBell(drop, directory)
    return beginLook(directory, Math.max(namesPerLook, 2 * waitingLimit))
  }

  const rest = (drop: Drop, lookedMs: number) => {
    const ms = Math.min(maxRestMs, lookedMs * restFactor)
    drop.resting = true
    later(ms, () => {
      drop.resting = false
      if (drop.dirty) makeReady(drop.inbox)
    })
  }

  const understand = (drop: Drop, directory: PinnedDirectory, { names, others }: Listing) => {
    const { rung, rungFor, suspect } = drop
    drop.rung = false
    drop.suspect = false
    // So that the next sweep passes over it, unless a change of this very moment could hide behind the same time.
    if (now() - directory.mtimeMs > settledMs) drop.sweptMtimeMs = directory.mtimeMs
    if (names.length > crowd) {
      takeDownBell(drop)
      drop.crowded = true
      drop.dirty = true
    } else if (drop.crowded) {
      drop.crowded = false
      drop.dirty = true
    }
    if (suspect && !rung && names.slice(0, crowd).some(name => hasWaited(directory, name))) missedEvent(drop)
    // Our own claims ring, too; that proves nothing about the other side's posts.
    if (drop.inbox.demoted && rungFor !== null && names.includes(rungFor)) heardEvent(drop.inbox)
    if (others.length > 0) tidy(drop, directory, others)
  }

  /** Long enough for its event to have come. The time of its rename is the one that its writer cannot set. */
  const hasWaited = (directory: PinnedDirectory, name: string | Buffer): boolean => {
    try {
      return now() - lstatSync(within(directory, name)).ctimeMs >= missedAfterMs
    } catch {
      // Taken back, or out of reach: no sign of anything.
      return false
    }
  }

  const introuble = (drop: Drop, condition: PinFailure): true => {
    drop.dirty = false
    if (drop.condition !== condition) {
      drop.condition = condition
      const advice = {
        missing: 'is missing; its files are taken as soon as it is there again',
        not_a_directory:
          'is not a directory (a link, or a file, is never followed); put a directory in its place',
        unreadable: 'cannot be read; give the host the right to list it',
      }[condition]
      tell(condition, drop, advice)
    }
    leave(drop)
    retryLater(drop)
    return true
  }

  const cannotClaim = (drop: Drop, code: string) => {
    if (drop.condition !== 'unclaimable') {
      drop.condition = 'unclaimable'
      const advice =
        code === 'EXDEV'
          ? 'is on another file system than the spool; keep them on one'
          : `does not let its files be moved out (${code}); nothing in it is executed until it does`
      tell('unclaimable', drop, advice)
    }
    // However full it is, it is not looked into again before its time.
    drop.dirty = false
    drop.failedAt = clock()
    if (!drop.failed) retryLater(drop)
    drop.failed = true
  }

  const claimableAgain = (drop: Drop) => {
    drop.condition = 'fine'
    drop.retryMs = tickMs
    troubled.delete(drop)
    if (!drop.bell) drop.dirty = true
    tell('claimable', drop, 'lets its files be moved out again')
  }

  const retryLater = (drop: Drop) => {
    // A look in between, because somebody rang, is not a retry that failed.
    if (troubled.has(drop) && clock() < drop.retryAt) return
    drop.retryAt = clock() + drop.retryMs
    // Where only a look shows what has come, a few stuck files must not keep the others waiting.
    const longest = drop.condition === 'unclaimable' && !drop.bell && !drop.crowded ? 1000 : 10_000
    drop.retryMs = Math.min(longest, drop.retryMs * 2)
    troubled.add(drop)
  }

  const retrySoon = (drop: Drop, ms: number) => {
    drop.retryAt = Math.min(drop.retryAt, drop.failedAt + ms)
  }

  const tell = (kind: Report['kind'], drop: Drop, message: string) =>
    report({
      kind,
      inbox: drop.inbox.id,
      drop: drop.name,
      message: `${drop.inbox.id}/${drop.name} ${message}.`,
    })

  const shedSome = (inbox: InboxState) => {
    for (const { drop, name } of inbox.shed.splice(-shedPerTurn)) {
      const directory = pinned(drop)
      if (typeof directory === 'string') continue
      try {
        unlinkSync(within(directory, name))
        inbox.shedCount++
      } catch (error) {
        // A directory goes the way of all files, when its turn comes.
        const code = errorCode(error)
        if (code !== 'ENOENT' && code !== 'EISDIR') cannotClaim(drop, code)
      }
    }
  }

  const reportShed = (inbox: InboxState) => {
    report({
      kind: 'shed',
      inbox: inbox.id,
      count: inbox.shedCount,
      message: `${inbox.id} had more than ${waitingLimit} files waiting; the newest ${inbox.shedCount} were thrown away unread.`,
    })
    inbox.shedCount = 0
  }

  /** Temporary files whose writer is long gone, and whatever else is no posted file, would slow every look for ever. */
  const tidy = (drop: Drop, directory: PinnedDirectory, names: readonly (string | Buffer)[]) => {
    const time = now()
    if (time - drop.tidiedAt < litterAgeMs / 6) return
    drop.tidiedAt = time
    let count = 0
    for (const name of names) {
      const path = within(directory, name)
      try {
        const about = lstatSync(path)
        if (about.isDirectory() || time - about.ctimeMs < litterAgeMs) continue
        unlinkSync(path)
        count++
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') break
      }
    }
    if (count > 0)
      tell('littered', drop, `held ${count} abandoned files that were never posted; they were removed`)
  }

  // --- bells, polls and sweeps -----------------------------------------------------------------------------------

  const hangBell = (drop: Drop, directory: PinnedDirectory) => {
    if (drop.sweptOnly) return
    if (options.events === 'off') return poll(drop.inbox)
    const delivers = deviceDelivers.get(directory.device)
    if (delivers === undefined) {
      const place = directory.device === claimedDevice ? options.claimed : drop.path
      deviceDelivers.set(directory.device, probeDevice(directory.device, place))
    }
    if (delivers !== true || (drop.noise && clock() < drop.noise.until)) return poll(drop.inbox)
    const bell = bells.hang(directory, drop)
    if (typeof bell !== 'string') {
      drop.bell = bell
      if (!drop.inbox.demoted && drop.inbox.pace) considerEvents(drop.inbox)
      return
    }
    if (!watchRefused) {
      watchRefused = true
      const advice =
        bell === 'ENOSPC'
          ? 'raise fs.inotify.max_user_watches'
          : bell === 'EMFILE'
            ? 'raise fs.inotify.max_user_instances or the limit of open files'
            : 'see the code'
      tell(
        'watch_refused',
        drop,
        `cannot be watched (${bell}): ${advice}. Until then such directories are polled`,
      )
    }
    poll(drop.inbox)
  }

  const probeDevice = async (device: number, path: string) => {
    const delivers = await deliversEvents(path, probeMs)
    if (delivers === undefined) deviceDelivers.delete(device)
    else deviceDelivers.set(device, delivers)
    if (stopped || !delivers) return
    for (const inbox of polled) {
      for (const drop of inbox.drops) drop.dirty = true
      makeReady(inbox)
    }
  }

  const takeDownBell = (drop: Drop) => {
    drop.bell?.close()
    drop.bell = undefined
  }

  const lost = (drop: Drop) => {
    takeDownBell(drop)
    unpin(drop)
    drop.dirty = true
    makeReady(drop.inbox)
  }

  const leave = (drop: Drop) => {
    takeDownBell(drop)
    unpin(drop)
    drop.look?.close()
    drop.look = undefined
    drop.listing = undefined
  }

  const ring = (drop: Drop, name: string | null) => {
    // Each attempt rings by itself.
    if (drop.condition === 'unclaimable' && clock() < drop.failedAt + unclaimablePauseMs) {
      return retrySoon(drop, unclaimablePauseMs)
    }
    drop.dirty = true
    drop.rung = true
    drop.rungFor = name
    makeReady(drop.inbox)
  }

  const noisy = (drop: Drop) => {
    takeDownBell(drop)
    const before = drop.noise && clock() - drop.noise.until < maxNoisyMs ? drop.noise.ms : 0
    const ms = Math.min(maxNoisyMs, Math.max(minNoisyMs, before * 2))
    drop.noise = { until: clock() + ms, ms }
    tell('noisy', drop, `rings without end; its bell is taken down for ${ms / 1000} s and it is polled`)
    poll(drop.inbox)
    drop.dirty = true
    makeReady(drop.inbox)
  }

  const bells = createDoorbells<Drop>({ ring, lost, noisy })

  const poll = (inbox: InboxState) => {
    if (inbox.pace) return
    inbox.pace = createPace(pollMinMs, pollMaxMs)
    polled.add(inbox)
    pollIn(inbox, inbox.pace.everyMs)
    if (started && !inbox.fresh) reportMode(inbox, 'polling')
  }

  const considerEvents = (inbox: InboxState) => {
    if (inbox.drops.some(drop => drop.condition === 'fine' && !drop.bell && !drop.crowded && !drop.sweptOnly))
      return
    inbox.pace = undefined
    polled.delete(inbox)
    if (started && !inbox.fresh) reportMode(inbox, 'events')
  }

  const reportMode = (inbox: InboxState, mode: WatchMode) =>
    report({
      kind: 'mode',
      inbox: inbox.id,
      mode,
      message:
        mode === 'events'
          ? `${inbox.id} is watched by events.`
          : `${inbox.id} is polled: events do not reach it, or cannot be relied on.`,
    })

  const missedEvent = (drop: Drop) => {
    const { inbox } = drop
    inbox.goodRings = 0
    if (inbox.demoted) return
    inbox.demoted = true
    tell('missed_event', drop, 'received a file without an event')
    poll(inbox)
  }

  const heardEvent = (inbox: InboxState) => {
    if (!inbox.demoted) return
    inbox.goodRings++
    if (inbox.goodRings < 3) return
    inbox.demoted = false
    considerEvents(inbox)
  }

  const pollIn = (inbox: InboxState, ms: number) => {
    inbox.pollAt = clock() + ms
    if (inbox.pollAt >= pollTimerAt) return
    clearTimeout(pollTimer)
    pollTimerAt = inbox.pollAt
    pollTimer = setTimeout(pollDue, ms)
  }

  const pollDue = () => {
    pollTimerAt = Number.POSITIVE_INFINITY
    if (stopped) return
    const time = clock()
    let earliest = Number.POSITIVE_INFINITY
    for (const inbox of polled) {
      if (inbox.pollAt <= time) {
        for (const drop of inbox.drops) if (!isWaitingForRetry(drop, time)) drop.dirty = true
        inbox.pollAt = time + pollMaxMs
        makeReady(inbox)
      }
      if (inbox.pollAt < earliest) earliest = inbox.pollAt
    }
    if (earliest < Number.POSITIVE_INFINITY && earliest < pollTimerAt) {
      pollTimerAt = earliest
      pollTimer = setTimeout(pollDue, Math.max(1, earliest - time))
    }
  }

  const isWaitingForRetry = (drop: Drop, time: number) => troubled.has(drop) && time < drop.retryAt

  const tick = () => {
    const time = clock()
    for (const drop of troubled) {
      if (drop.inbox.removed) troubled.delete(drop)
      else if (time >= drop.retryAt) {
        drop.dirty = true
        makeReady(drop.inbox)
      }
    }
    // The kernel tells of a removed directory only once nobody holds it any more.
    for (const drop of pins) if (changeOf(drop) === undefined) lost(drop)
    if (sweepAt >= sweepOrder.length) {
      sweepOrder = [...inboxes.values()]
      sweepAt = 0
    }
    const slice = Math.ceil((sweepOrder.length * tickMs) / sweepMs)
    for (let i = 0; i < slice && sweepAt < sweepOrder.length; i++, sweepAt++) {
      const inbox = sweepOrder[sweepAt]
      if (inbox && !inbox.removed && !inbox.pace) sweep(inbox)
    }
  }

  const sweep = (inbox: InboxState) => {
    for (const drop of inbox.drops) {
      if (drop.dirty || drop.crowded || isBeingListed(drop) || troubled.has(drop)) continue
      const changed = changeOf(drop)
      if (changed === undefined) {
        lost(drop)
        continue
      }
      if (changed === drop.sweptMtimeMs) continue
      drop.suspect = drop.bell !== undefined
      // Another change in the same tick of the file system's clock would look the same.
      drop.sweptMtimeMs = now() - changed < settledMs ? 0 : changed
      drop.dirty = true
      makeReady(inbox)
    }
  }

  const changeOf = (drop: Drop): number | undefined => {
    try {
      const about = lstatSync(drop.path)
      return about.ino === drop.inode ? about.mtimeMs : undefined
    } catch {
      // The look that follows finds out, and reports it.
      return undefined
    }
  }

  // --- the consumer's side ---------------------------------------------------------------------------------------

  const wait = (file: ClaimedFile) => {
    endWait(file)
    const inbox = inboxes.get(file.inbox)
    const since = firstWaited.get(file) ?? clock()
    // Without what was read: there may be a thousand of them.
    const unread = { ...file, text: '' }
    firstWaited.set(file, since)
    firstWaited.set(unread, since)
    const lookAgain = () => {
      // Reading and parsing it in vain is what a writer of large unfinished files would like the host to do.
      if (mayGrowStill(file, since) && isUnchanged(file)) {
        waits.set(file.seq, { timer: later(pauseBeforeReading(since), lookAgain), inbox })
        return
      }
      endWait(file)
      unread.recovered = file.recovered
      late.push(unread)
      schedule()
    }
    waits.set(file.seq, { timer: later(pauseBeforeReading(since), lookAgain), inbox })
    if (inbox) inbox.waiting++
  }

  const pauseBeforeReading = (since: number) => Math.min(250, Math.max(5, clock() - since))

  const mayGrowStill = (file: ClaimedFile, since: number | undefined): boolean =>
    (file.problem === 'unreadable' || now() - file.mtimeUs / 1000 < graceMs) &&
    (since === undefined || clock() - since < graceMs * maxGraceFactor)

  const isUnchanged = ({ path, size, mtimeUs, problem }: ClaimedFile): boolean => {
    if (problem === 'unreadable') return false
    try {
      const about = lstatSync(path)
      return about.size === size && Math.round(about.mtimeMs * 1000) === mtimeUs
    } catch {
      // Reading it finds out why.
      return false
    }
  }

  const endWait = (file: ClaimedFile) => {
    const waiting = waits.get(file.seq)
    if (!waiting) return
    waits.delete(file.seq)
    clearTimeout(waiting.timer)
    timers.delete(waiting.timer)
    if (waiting.inbox) waiting.inbox.waiting--
  }

  const readAgain = (file: ClaimedFile): ClaimedFile => {
    const again = claims.reread(file)
    const since = firstWaited.get(file)
    again.mayGrow = mayGrowStill(again, since)
    if (since !== undefined) firstWaited.set(again, since)
    return again
  }

  const discard = (files: readonly ClaimedFile[]) => {
    if (waits.size > 0) for (const file of files) endWait(file)
    fault('discarding')
    remover.remove(files.map(file => file.path))
  }

  const add = (inbox: Inbox) => {
    if (inboxes.has(inbox.id)) return
    if (!isValidInbox(inbox.id) || !inbox.drops.every(isValidDrop)) {
      throw new RangeError(
        `${JSON.stringify(inbox.id)} or one of its directories has a name that no claim can carry`,
      )
    }
    const state = createInboxState(inbox)
    inboxes.set(inbox.id, state)
    freshLeft++
    makeReady(state)
  }

  return {
    async start() {
      late = claims.recover()
      removeOldProbes(options.claimed)
      await probeFirst()
      if (stopped) return
      started = true
      tickTimer = setInterval(tick, tickMs)
      await new Promise<void>(resolve => {
        freshDone = resolve
        if (late.length > 0 || isAnyReady()) schedule()
        else afterTurn()
      })
    },
    add,
    remove(id) {
      const inbox = inboxes.get(id)
      if (!inbox) return
      settleFresh(inbox)
      inbox.removed = true
      inbox.queue = []
      inbox.head = 0
      for (const drop of inbox.drops) leave(drop)
      polled.delete(inbox)
      inboxes.delete(id)
    },
    wait,
    discard,
    adopt(path, inbox, drop, name) {
      // Before the claims of an earlier process are known, its number could be one of theirs.
      if (!started) return 'EAGAIN'
      const file = claims.adopt(path, inbox, drop, name)
      if (typeof file === 'string') return file
      late.push(file)
      schedule()
      return undefined
    },
    look(id) {
      const inbox = inboxes.get(id)
      if (!inbox) return
      for (const drop of inbox.drops) drop.dirty = true
      makeReady(inbox)
    },
    mode(id) {
      const inbox = inboxes.get(id)
      return inbox && (inbox.pace ? 'polling' : 'events')
    },
    busy: () => isAnyReady() || late.length > 0 || held !== undefined,
    async stop() {
      stopped = true
      clearInterval(tickTimer)
      clearTimeout(pollTimer)
      for (const inbox of inboxes.values()) for (const drop of inbox.drops) leave(drop)
      freshDone?.()
      await consuming
      for (const timer of timers) clearTimeout(timer)
      await remover.close()
    },
  }

  /**
   * Asks before the first look, so that an ordinary start needs no second one; and where no writer can have a hand in
   * the answer, because claimed files lie on the file system of the inboxes.
   */
  async function probeFirst() {
    if (options.events === 'off') return
    const directory = pinDirectory(options.claimed)
    if (typeof directory === 'string') return
    directory.close()
    claimedDevice = directory.device
    const delivers = await deliversEvents(options.claimed, probeMs)
    if (delivers !== undefined) deviceDelivers.set(directory.device, delivers)
  }
}

/** Names of one millisecond sort by their sequence number where they have one; the others are sorted once claimed. */
const compareEntries = (a: Entry, b: Entry): number =>
  a.time - b.time || (String(a.name) < String(b.name) ? -1 : 1)
