import type { Claims } from './claims.ts'
import { emptyQueue, type InboxState, isBeingListed, wantLook, wantsLook } from './drop.ts'
import type { Looking } from './looking.ts'
import { compareFiles, sequenceOfName } from './names.ts'
import type { Pins } from './pins.ts'
import { createShare } from './share.ts'
import type { Shedding } from './shedding.ts'
import type { Timers } from './timers.ts'
import type { Trouble } from './trouble.ts'
import type { ClaimedFile, Report } from './types.ts'
import type { Waits } from './waits.ts'

/**
 * The line of inboxes that have, or may have, files, and the turns they take.
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
 */
export interface Turns {
  /** an inbox that was not there before; `start` waits for what lies in it */
  enter(inbox: InboxState): void
  leave(inbox: InboxState): void
  makeReady(inbox: InboxState): void
  /** files of ours that come before anything else */
  takeFirst(files: readonly ClaimedFile[]): void
  /** resolves when everything that was waiting has been handed over */
  start(): Promise<void>
  isBusy(): boolean
  /** calls back when whatever lies in the inbox now has been consumed, also what seems half-written; not after `stop` */
  whenThrough(inbox: InboxState, then: () => void): void
  /** resolves when the batch that is being consumed has been */
  stop(): Promise<void>
}

const batchLimit = 512
/** A batch of more is followed by another directory for those claimed next. */
const bucketLimit = 32
/** Files are read into memory to be handed over, and large ones take longer. */
const shareBytes = 512 * 1024
const batchBytes = 4 * 1024 * 1024
/** So many are looked into before the event loop gets its turn. */
const inboxesPerTurn = 256
/** Files of one millisecond are sorted by their own time, which needs all of them in one turn. */
const tieLimit = 16
const maxParkedMs = 60_000
const minHeldMs = 50
const maxHeldMs = 5000

export function createTurns(options: {
  spinMs: number
  now(): number
  isStopped(): boolean
  timers: Timers
  claims: Claims
  pins: Pins
  trouble: Trouble
  looking: Looking
  shedding: Shedding
  waits: Waits
  consume(files: readonly ClaimedFile[]): void | Promise<void>
  allowance: ((inbox: string) => { files: number; retryMs: number }) | undefined
  report(report: Report): void
  fault(step: 'claimed' | 'gathered'): void
}): Turns {
  const { spinMs, now, isStopped, timers, claims, pins, trouble, looking, shedding, waits } = options
  const { consume, allowance, report, fault } = options
  /** from `head` on; before it are those whose turn it was */
  let line: InboxState[] = []
  let head = 0
  /** served in this turn, with more to come */
  let again: InboxState[] = []
  let late: ClaimedFile[] = []
  let held: readonly ClaimedFile[] | undefined
  let heldMs = 0
  let lastFileAt = Number.NEGATIVE_INFINITY
  let spinning = false
  let resting = false
  let started = false
  let consuming: Promise<void> | undefined
  let scheduled = false
  let arriving = 0
  let caughtUp: (() => void) | undefined
  const through = new Map<InboxState, (() => void)[]>()
  const share = createShare()

  const schedule = () => {
    if (scheduled || consuming || resting || !started || isStopped()) return
    scheduled = true
    setImmediate(turn)
  }

  const makeReady = (inbox: InboxState) => {
    if (inbox.ready || inbox.parked || inbox.removed) return
    inbox.ready = true
    line.push(inbox)
    schedule()
  }

  const isAnyReady = () => line.length > head || again.length > 0

  const turn = () => {
    scheduled = false
    if (isStopped() || consuming || resting) return
    const begun = performance.now()
    const batch = held ?? gather()
    if (batch.length === 0) return afterTurn()
    fault('gathered')
    hand(batch, begun)
    stayAwake()
  }

  /** One file alone is no reason to stay awake; two close together are, for as long as they were apart at most. */
  const stayAwake = () => {
    const time = performance.now()
    const isClose = time - lastFileAt < spinMs
    lastFileAt = time
    if (!isClose || spinning) return
    spinning = true
    setImmediate(spin)
  }

  const spin = () => {
    spinning = !isStopped() && performance.now() - lastFileAt < spinMs
    if (spinning) setImmediate(spin)
  }

  const hand = (batch: readonly ClaimedFile[], begun: number) => {
    const failed = (error: unknown) => {
      for (const file of batch) {
        file.recovered = true
        // It is in the batch that is given again, and must not come a second time.
        waits.end(file)
      }
      held = batch
      resting = true
      heldMs = Math.min(maxHeldMs, Math.max(minHeldMs, heldMs * 2))
      const reason = error instanceof Error ? error.message : String(error)
      report({
        kind: 'consumer_failed',
        message: `A batch of ${batch.length} files could not be taken and is kept; it is tried again in ${heldMs} ms: ${reason}`,
      })
      timers.later(heldMs, () => {
        resting = false
        schedule()
      })
    }
    const taken = () => {
      held = undefined
      heldMs = 0
      if (batch.length > bucketLimit) claims.nextBucket()
      share.took(batch.length, performance.now() - begun)
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
    if (arriving === 0 && late.length === 0 && !held) caughtUp?.()
    for (const inbox of through.keys()) if (hasNothing(inbox)) tellThrough(inbox)
    if ((isAnyReady() || late.length > 0) && !held) schedule()
  }

  /** Looked into, taken, and consumed; a directory that cannot be looked into has nothing that could be. */
  const hasNothing = (inbox: InboxState): boolean =>
    !inbox.ready &&
    !inbox.parked &&
    !inbox.shed &&
    inbox.waiting === 0 &&
    inbox.head === inbox.queue.length &&
    !inbox.drops.some(drop => drop.dirty || isBeingListed(drop)) &&
    !held &&
    !consuming &&
    !late.some(file => file.inbox === inbox.id)

  const tellThrough = (inbox: InboxState) => {
    const heard = through.get(inbox) ?? []
    through.delete(inbox)
    for (const then of heard) then()
  }

  const gather = (): ClaimedFile[] => {
    const batch: ClaimedFile[] = []
    let bytes = late.length > 0 ? takeLate(batch) : 0
    if (again.length > 0) {
      for (const inbox of again) line.push(inbox)
      again = []
    }
    const end = Math.min(line.length, head + inboxesPerTurn)
    while (head < end && batch.length < batchLimit && bytes < batchBytes) {
      const inbox = line[head++]
      if (!inbox) break
      bytes += takeTurn(inbox, batch)
      pins.releaseIdle()
    }
    shortenLine()
    return batch
  }

  const shortenLine = () => {
    if (head < line.length && head < inboxesPerTurn * 8) return
    line = head < line.length ? line.slice(head) : []
    head = 0
  }

  const takeLate = (batch: ClaimedFile[]): number => {
    let bytes = 0
    while (batch.length < late.length && batch.length < batchLimit && bytes < batchBytes) {
      const file = late[batch.length]
      if (!file) break
      const reread = waits.readAgain(file)
      bytes += reread.text.length
      batch.push(reread)
    }
    late = late.slice(batch.length)
    return bytes
  }

  const takeTurn = (inbox: InboxState, batch: ClaimedFile[]): number => {
    inbox.ready = false
    if (inbox.removed) return 0
    const allowed = allowance?.(inbox.id)
    if (allowed && allowed.files <= 0) {
      park(inbox, allowed.retryMs)
      return 0
    }
    if (inbox.shed) shedding.some(inbox)
    if (inbox.head === inbox.queue.length) looking.refill(inbox)
    const bytes = takeFiles(inbox, batch, Math.min(share.size(), allowed?.files ?? Number.POSITIVE_INFINITY))
    if (inbox.shed) shedding.reportDone(inbox)
    if (inbox.head === inbox.queue.length && !inbox.drops.some(isBeingListed)) isThrough(inbox)
    if (inbox.head < inbox.queue.length || inbox.shed || inbox.drops.some(wantsLook)) {
      inbox.ready = true
      again.push(inbox)
    }
    return bytes
  }

  const park = (inbox: InboxState, ms: number) => {
    inbox.parked = true
    hasArrived(inbox)
    timers.later(Math.min(maxParkedMs, Math.max(1, ms)), () => {
      inbox.parked = false
      makeReady(inbox)
    })
  }

  const isThrough = (inbox: InboxState) => {
    for (const drop of inbox.drops) {
      if (drop.condition === 'unclaimable' && !drop.troubles?.failed) trouble.canClaim(drop)
    }
    // Whatever comes in meanwhile, a flood must not keep `start` from ending.
    if (inbox.arrival?.caughtUp) hasArrived(inbox)
  }

  const hasArrived = (inbox: InboxState) => {
    if (!inbox.arrival) return
    inbox.arrival = undefined
    arriving--
  }

  const takeFiles = (inbox: InboxState, batch: ClaimedFile[], count: number): number => {
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
      const { drop, name } = entry
      const directory = pins.of(drop)
      if (typeof directory === 'string') {
        wantLook(drop)
        continue
      }
      const file = claims.claim(directory, inbox.id, drop.name, name)
      if (typeof file === 'string') {
        // It may have been taken back by its writer.
        if (file !== 'ENOENT') trouble.cannotClaim(drop, file)
        continue
      }
      fault('claimed')
      if (drop.condition === 'unclaimable') trouble.partlyClaimed(drop)
      bytes += file.text.length
      file.mayGrow = waits.mayGrow(file, inbox, time)
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
    enter(inbox) {
      arriving++
      makeReady(inbox)
    },
    leave(inbox) {
      hasArrived(inbox)
      inbox.removed = true
      emptyQueue(inbox)
      tellThrough(inbox)
    },
    makeReady,
    takeFirst(files) {
      // There may be more than a call can have arguments.
      for (const file of files) late.push(file)
      schedule()
    },
    start() {
      started = true
      return new Promise<void>(resolve => {
        caughtUp = resolve
        if (late.length > 0 || isAnyReady()) schedule()
        else afterTurn()
      })
    },
    isBusy: () => isAnyReady() || late.length > 0 || held !== undefined,
    whenThrough(inbox, then) {
      through.set(inbox, [...(through.get(inbox) ?? []), then])
      for (const drop of inbox.drops) wantLook(drop)
      makeReady(inbox)
    },
    async stop() {
      through.clear()
      caughtUp?.()
      await consuming
    },
  }
}

/** Where a share of so many ends: not among files of one millisecond whose names tell nothing more, if it can be. */
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
