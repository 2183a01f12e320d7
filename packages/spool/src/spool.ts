import { lstatSync, unlinkSync } from 'node:fs'
import { type Claims, createClaims } from './claims.ts'
import { errorCode, type PinFailure, type PinnedDirectory, pinDirectory } from './directory.ts'
import { hangDoorbell } from './doorbell.ts'
import { createInboxState, type Drop, type Entry, type InboxState } from './drop.ts'
import { list } from './listing.ts'
import { compareFiles } from './names.ts'
import { createPace } from './pace.ts'
import { deliversEvents } from './probe.ts'
import { createRemover } from './remove.ts'
import type { ClaimedFile, Inbox, Report, WatchMode } from './types.ts'

/**
 * The consumer's side of the spool: many inboxes, one consumer.
 *
 * An inbox is *quiet*, *ready* (in the line of those that have, or may have, files) or *parked* (over its allowance).
 *
 *   quiet  → ready   a bell rang, a poll or sweep is due, a directory changed
 *   ready  → ready   its turn gave some files and there are more: back to the end of the line (promise 6)
 *   ready  → parked  the consumer allows it no more for now; → ready when the time it named has passed
 *   ready  → quiet   looked into, and nothing left
 *
 * A turn takes a share of files from each ready inbox, up to one batch, claims and reads them, and hands the batch
 * over. The next turn begins when the consumer is done with it and the event loop has been around once, so that
 * rings of other inboxes are heard in between. A batch the consumer fails on is held and given again.
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
  /** resolves when everything that was waiting has been consumed */
  start(): Promise<void>
  add(inbox: Inbox): void
  remove(inbox: string): void
  wait(file: ClaimedFile): void
  discard(files: readonly ClaimedFile[]): void
  /** has a file of ours handled as if the inbox had posted it; an error code if it cannot be moved */
  adopt(path: string, inbox: string, drop: string, name: string): string | undefined
  /** look now, whatever the bells say */
  look(inbox: string): void
  mode(inbox: string): WatchMode | undefined
  /** whether files are known to be waiting */
  busy(): boolean
  stop(): Promise<void>
}

const share = 32
const batchLimit = 512
/** Files of one millisecond are sorted by their own time, which needs all of them in one turn. */
const tieLimit = 256
const crowd = 64
const tickMs = 250
const probeMs = 250
const maxGraceFactor = 5
const maxWaitingPerInbox = 1000
const litterAgeMs = 3_600_000
const shedPerTurn = 256
/** Handles kept between turns, out of the few thousand a process may have. */
const pinLimit = 32

export function createSpool(options: SpoolOptions): Spool {
  const {
    report,
    consume,
    waitingLimit,
    pollMinMs = 5,
    pollMaxMs = 1000,
    sweepMs = 60_000,
    graceMs = 2000,
  } = options
  const now = options.now ?? Date.now
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
  const firstSeen = new Map<ClaimedFile['path'], number>()
  let line: InboxState[] = []
  let late: ClaimedFile[] = []
  let held: readonly ClaimedFile[] | undefined
  let heldMs = 0
  let started = false
  let stopped = false
  let consuming = false
  let scheduled = false
  let freshLeft = 0
  let freshDone: (() => void) | undefined
  let watchRefused = false
  let pollTimer: NodeJS.Timeout | undefined
  let pollTimerAt = Number.POSITIVE_INFINITY
  let tickTimer: NodeJS.Timeout | undefined
  let sweepOrder: InboxState[] = []
  let sweepAt = 0
  const timers = new Set<NodeJS.Timeout>()

  const later = (ms: number, work: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!stopped) work()
    }, ms)
    timers.add(timer)
  }

  // --- turns -----------------------------------------------------------------------------------------------------

  const schedule = () => {
    if (scheduled || consuming || stopped || !started) return
    scheduled = true
    setImmediate(turn)
  }

  const makeReady = (inbox: InboxState) => {
    if (inbox.ready || inbox.parked || inbox.removed) return
    inbox.ready = true
    line.push(inbox)
    schedule()
  }

  const turn = () => {
    scheduled = false
    if (stopped || consuming) return
    const batch = held ?? gather()
    if (batch.length === 0) return afterTurn()
    fault('gathered')
    hand(batch)
  }

  const hand = (batch: readonly ClaimedFile[]) => {
    const failed = (error: unknown) => {
      for (const file of batch) file.recovered = true
      held = batch
      heldMs = Math.min(5000, Math.max(50, heldMs * 2))
      const reason = error instanceof Error ? error.message : String(error)
      report({
        kind: 'consumer_failed',
        message: `A batch of ${batch.length} files could not be taken and is kept; it is tried again in ${heldMs} ms: ${reason}`,
      })
      later(heldMs, schedule)
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
      consuming = true
      done.then(taken, failed).finally(() => {
        consuming = false
        afterTurn()
      })
    } catch (error) {
      failed(error)
    }
  }

  const afterTurn = () => {
    if (freshLeft === 0 && late.length === 0 && !held && freshDone) {
      freshDone()
      freshDone = undefined
    }
    if ((line.length > 0 || late.length > 0) && !held) schedule()
  }

  const gather = (): ClaimedFile[] => {
    const batch = late.length <= batchLimit ? late : late.slice(0, batchLimit)
    late = late.slice(batch.length)
    const current = line
    line = []
    let next = 0
    for (; next < current.length && batch.length < batchLimit; next++) {
      const inbox = current[next]
      if (inbox) takeTurn(inbox, batch)
    }
    line = next < current.length ? [...current.slice(next), ...line] : line
    unpinIdle()
    return batch
  }

  const takeTurn = (inbox: InboxState, batch: ClaimedFile[]) => {
    inbox.ready = false
    if (inbox.removed) return
    const allowance = options.allowance?.(inbox.id)
    if (allowance && allowance.files <= 0) {
      inbox.parked = true
      settleFresh(inbox)
      later(Math.max(1, allowance.retryMs), () => {
        inbox.parked = false
        makeReady(inbox)
      })
      return
    }
    if (inbox.shed.length > 0) shedSome(inbox)
    if (inbox.head === inbox.queue.length) refill(inbox)
    takeFiles(inbox, batch, Math.min(share, allowance?.files ?? share))
    if (inbox.head < inbox.queue.length || inbox.shed.length > 0 || inbox.drops.some(isDirty))
      makeReady(inbox)
    else settleFresh(inbox)
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

  const takeFiles = (inbox: InboxState, batch: ClaimedFile[], count: number) => {
    const { queue } = inbox
    const from = batch.length
    const time = now()
    let ordered = true
    while (inbox.head < queue.length) {
      const entry = queue[inbox.head]
      if (!entry) break
      const taken = batch.length - from
      if (taken >= count && !(taken < count + tieLimit && entry.time === queue[inbox.head - 1]?.time)) break
      inbox.head++
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
      if (entry.drop.condition === 'unclaimable') claimableAgain(entry.drop)
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
  }

  // --- looking ---------------------------------------------------------------------------------------------------

  const isDirty = (drop: Drop) => drop.dirty

  const refill = (inbox: InboxState) => {
    const entries: Entry[] = []
    let sorted = true
    let last = Number.NEGATIVE_INFINITY
    let found = false
    for (const drop of inbox.drops) {
      if (!drop.dirty) continue
      const listing = lookInto(drop)
      if (!listing) continue
      if (listing.names.length > 0) found = true
      for (let i = 0; i < listing.names.length; i++) {
        const name = listing.names[i]
        const time = listing.times[i]
        if (name === undefined || time === undefined) continue
        if (time < last) sorted = false
        last = time
        entries.push({ drop, name, time })
      }
    }
    if (!sorted) entries.sort((a, b) => a.time - b.time)
    if (entries.length > waitingLimit) {
      inbox.shed = entries.splice(waitingLimit)
      inbox.shedCount += inbox.shed.length
    }
    inbox.queue = entries
    inbox.head = 0
    if (inbox.pace) {
      if (found) inbox.pace.found()
      else inbox.pace.foundNothing()
      pollIn(inbox, inbox.pace.everyMs)
    }
    fault('listed')
  }

  const lookInto = (drop: Drop) => {
    const { rung, suspect } = drop
    drop.dirty = false
    drop.rung = false
    drop.suspect = false
    const directory = pinned(drop)
    if (typeof directory === 'string') return introuble(drop, directory)
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
    let listing: ReturnType<typeof list>
    try {
      listing = list(directory)
    } catch (error) {
      return introuble(drop, errorCode(error) === 'ENOENT' ? 'missing' : 'unreadable')
    }
    const count = listing.names.length
    if (count > crowd) {
      takeDownBell(drop)
      drop.crowded = true
      drop.dirty = true
    } else if (drop.crowded) {
      drop.crowded = false
      drop.dirty = true
    }
    if (suspect && count > 0) missedEvent(drop)
    if (rung && count > 0) heardEvent(drop.inbox)
    if (listing.others.length > 0) tidy(drop, directory, listing.others)
    return listing
  }

  const introuble = (drop: Drop, condition: PinFailure): undefined => {
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
    takeDownBell(drop)
    unpin(drop)
    retryLater(drop)
    return undefined
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
    retryLater(drop)
  }

  const claimableAgain = (drop: Drop) => {
    drop.condition = 'fine'
    drop.retryMs = tickMs
    troubled.delete(drop)
    tell('claimable', drop, 'lets its files be moved out again')
  }

  const retryLater = (drop: Drop) => {
    drop.retryAt = now() + drop.retryMs
    drop.retryMs = Math.min(10_000, drop.retryMs * 2)
    troubled.add(drop)
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
        unlinkSync(
          typeof name === 'string'
            ? `${directory.path}/${name}`
            : Buffer.concat([Buffer.from(`${directory.path}/`), name]),
        )
      } catch (error) {
        inbox.shedCount--
        if (errorCode(error) !== 'ENOENT') cannotClaim(drop, errorCode(error))
      }
    }
    if (inbox.shed.length > 0) return
    report({
      kind: 'shed',
      inbox: inbox.id,
      count: inbox.shedCount,
      message: `${inbox.id} had more than ${waitingLimit} files waiting; the newest ${inbox.shedCount} were thrown away unread.`,
    })
    inbox.shedCount = 0
  }

  /** Temporary files whose writer is long gone, and whatever else is no posted file, would slow every look for ever. */
  const tidy = (drop: Drop, directory: PinnedDirectory, names: readonly string[]) => {
    const time = now()
    if (time - drop.tidiedAt < litterAgeMs / 6) return
    drop.tidiedAt = time
    let count = 0
    for (const name of names.slice(0, 5000)) {
      const path = `${directory.path}/${name}`
      const about = lstatSync(path, { throwIfNoEntry: false })
      if (!about || about.isDirectory() || time - about.mtimeMs < litterAgeMs) continue
      try {
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
    if (options.events === 'off') return poll(drop.inbox)
    const delivers = deviceDelivers.get(directory.device)
    if (delivers === undefined) deviceDelivers.set(directory.device, probeDevice(directory.device, drop.path))
    if (delivers !== true) return poll(drop.inbox)
    const bell = hangDoorbell(
      directory,
      itself => ring(drop, itself),
      () => {
        takeDownBell(drop)
        drop.dirty = true
        makeReady(drop.inbox)
      },
    )
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
    deviceDelivers.set(device, delivers)
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

  const ring = (drop: Drop, itself: boolean) => {
    if (itself) unpin(drop)
    else if (drop.condition === 'unclaimable' && now() < drop.retryAt) return
    drop.dirty = true
    drop.rung = true
    makeReady(drop.inbox)
  }

  const poll = (inbox: InboxState) => {
    if (inbox.pace) return
    inbox.pace = createPace(pollMinMs, pollMaxMs)
    polled.add(inbox)
    pollIn(inbox, inbox.pace.everyMs)
    if (started && !inbox.fresh) reportMode(inbox, 'polling')
  }

  const considerEvents = (inbox: InboxState) => {
    if (inbox.drops.some(drop => drop.condition === 'fine' && !drop.bell && !drop.crowded)) return
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
          : `${inbox.id} is polled: events do not reach it.`,
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
    inbox.pollAt = now() + ms
    if (inbox.pollAt >= pollTimerAt) return
    clearTimeout(pollTimer)
    pollTimerAt = inbox.pollAt
    pollTimer = setTimeout(pollDue, ms)
  }

  const pollDue = () => {
    pollTimerAt = Number.POSITIVE_INFINITY
    if (stopped) return
    const time = now()
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
    const time = now()
    for (const drop of troubled) {
      if (drop.inbox.removed) troubled.delete(drop)
      else if (time >= drop.retryAt) {
        drop.dirty = true
        makeReady(drop.inbox)
      }
    }
    if (sweepAt >= sweepOrder.length) {
      sweepOrder = [...inboxes.values()]
      sweepAt = 0
    }
    const slice = Math.ceil((sweepOrder.length * tickMs) / sweepMs)
    for (let i = 0; i < slice && sweepAt < sweepOrder.length; i++, sweepAt++) {
      const inbox = sweepOrder[sweepAt]
      if (inbox && !inbox.removed && !inbox.pace) sweep(inbox, time)
    }
  }

  const sweep = (inbox: InboxState, time: number) => {
    for (const drop of inbox.drops) {
      if (drop.dirty || drop.crowded || troubled.has(drop)) continue
      const about = lstatSync(drop.path, { throwIfNoEntry: false })
      if (about && about.ino === drop.inode && about.mtimeMs === drop.sweptMtimeMs) continue
      const changed = about?.mtimeMs ?? 0
      // A change of this moment may still be on its way as an event; it is looked at in the next round.
      if (about && about.ino === drop.inode && time - changed < 1000) continue
      if (about?.ino !== drop.inode) unpin(drop)
      drop.suspect = drop.bell !== undefined
      drop.sweptMtimeMs = changed
      drop.dirty = true
      makeReady(inbox)
    }
  }

  // --- the consumer's side ---------------------------------------------------------------------------------------

  const wait = (file: ClaimedFile) => {
    const inbox = inboxes.get(file.inbox)
    const since = firstSeen.get(file.path) ?? now()
    if (!firstSeen.has(file.path)) {
      firstSeen.set(file.path, since)
      if (inbox) inbox.waiting++
    }
    const waited = now() - since
    later(Math.min(250, Math.max(5, waited)), () => {
      const again = claims.reread(file)
      const time = now()
      const recent = again.problem === 'unreadable' || time - again.mtimeUs / 1000 < graceMs
      again.mayGrow = recent && time - since < graceMs * maxGraceFactor
      late.push(again)
      schedule()
    })
  }

  const discard = (files: readonly ClaimedFile[]) => {
    for (const file of files) {
      if (firstSeen.size > 0 && firstSeen.delete(file.path)) {
        const inbox = inboxes.get(file.inbox)
        if (inbox) inbox.waiting--
      }
    }
    fault('discarding')
    remover.remove(files.map(file => file.path))
  }

  const add = (inbox: Inbox) => {
    if (inboxes.has(inbox.id)) return
    const state = createInboxState(inbox)
    inboxes.set(inbox.id, state)
    freshLeft++
    makeReady(state)
  }

  return {
    async start() {
      const recovered = claims.recover()
      const time = now()
      for (const file of recovered) {
        file.mayGrow = file.problem === 'unreadable' || time - file.mtimeUs / 1000 < graceMs
      }
      late.push(...recovered)
      await probeFirst()
      started = true
      tickTimer = setInterval(tick, tickMs)
      await new Promise<void>(resolve => {
        freshDone = resolve
        if (late.length > 0 || line.length > 0) schedule()
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
      for (const drop of inbox.drops) {
        takeDownBell(drop)
        unpin(drop)
      }
      polled.delete(inbox)
      inboxes.delete(id)
    },
    wait,
    discard,
    adopt(path, inbox, drop, name) {
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
    busy: () => line.length > 0 || late.length > 0 || held !== undefined,
    async stop() {
      stopped = true
      clearInterval(tickTimer)
      clearTimeout(pollTimer)
      for (const timer of timers) clearTimeout(timer)
      for (const inbox of inboxes.values()) {
        for (const drop of inbox.drops) {
          takeDownBell(drop)
          unpin(drop)
        }
      }
      await remover.close()
    },
  }

  /** Asks the first directory's device before the first sweep, so that an ordinary start needs no second one. */
  async function probeFirst() {
    if (options.events === 'off') return
    for (const inbox of inboxes.values()) {
      for (const drop of inbox.drops) {
        const directory = pinDirectory(drop.path)
        if (typeof directory === 'string') continue
        directory.close()
        deviceDelivers.set(directory.device, await deliversEvents(drop.path, probeMs))
        return
      }
    }
  }
}
