import { lstatSync } from 'node:fs'
import type { Bells } from './bells.ts'
import { errorCode, type PinFailure, type PinnedDirectory, within } from './directory.ts'
import { type Drop, type Entry, type InboxState, isResting, troublesOf, wantLook, wantsLook } from './drop.ts'
import { beginLook, countPosted, isLarge, isWhole, type Listing, type Look } from './listing.ts'
import { isValidName } from './names.ts'
import type { Pins } from './pins.ts'
import type { Polls } from './polls.ts'
import { settledMs } from './sweeps.ts'
import type { Tell } from './tell.ts'
import { createTidying } from './tidying.ts'
import type { Timers } from './timers.ts'
import type { Trouble } from './trouble.ts'

/**
 * Finds out what is to be taken from an inbox, in order.
 *
 * A look is not a moment: while one directory is listed, files come into another. What was posted after it began is
 * left for the next one wherever something posted before it could have been overlooked, so that the order stays.
 *
 * A lone ring names the one file there is: rings come in order, so whatever was posted before it has rung, and been
 * taken. That file is tried without a look, which follows all the same once the file is dealt with. Where a ring may
 * have been missed the look comes first.
 */
export interface Looking {
  /** fills the inbox's queue, if its directories are listed through */
  refill(inbox: InboxState): void
  /** rings may be missing: no directory is taken from without a look before it is looked into again */
  distrustRings(): void
}

const crowd = 64
/** Of more than this the oldest are not looked for: what is seen first counts as waiting. */
const namesPerLook = 100_000
/** A large directory is looked into for a tenth of the time at most. */
const restFactor = 10
const maxRestMs = 10_000
/** Longer than an event takes. */
const missedAfterMs = 100

export function createLooking(options: {
  waitingLimit: number
  now(): number
  timers: Timers
  tell: Tell
  pins: Pins
  polls: Polls
  bells: Bells
  trouble: Trouble
  makeReady(inbox: InboxState): void
  listed(): void
}): Looking {
  const { waitingLimit, now, timers, tell, pins, polls, bells, trouble, makeReady } = options
  const tidy = createTidying({ now, tell })
  let listings = 0
  /** listings up to this one were followed by a deluge of rings */
  let distrusted = 0

  const refill = (inbox: InboxState) => {
    const called = soleCall(inbox)
    if (called) {
      inbox.queue = [called]
      inbox.head = 0
      return
    }
    inbox.lookBegan ??= now()
    const began = inbox.lookBegan
    if (inbox.arrival) inbox.arrival.firstLookBegan ??= began
    if (!listDrops(inbox)) return
    const listed = entriesOf(inbox)
    const entries = isOneMoment(inbox) ? listed : postedBefore(began, listed)
    if (inbox.arrival) {
      const { firstLookBegan = began } = inbox.arrival
      inbox.arrival.caughtUp = entries.length === listed.length || began > firstLookBegan
    }
    inbox.lookBegan = undefined
    for (const drop of inbox.drops) drop.listing = undefined
    if (inbox.shed || entries.length > waitingLimit) {
      inbox.shed = { entries: entries.splice(waitingLimit), count: inbox.shed?.count ?? 0 }
    }
    inbox.queue = entries
    inbox.head = 0
    polls.looked(inbox, listed.length > 0)
    options.listed()
  }

  /** The file of the only ring there was, if nothing else can be there. The directory stays due for its look. */
  const soleCall = (inbox: InboxState): Entry | undefined => {
    if (inbox.polling || inbox.shed || inbox.lookBegan !== undefined) return undefined
    let caller: Drop | undefined
    for (const drop of inbox.drops) {
      if (drop.bell && drop.listedAs <= distrusted) wantLook(drop)
      if (drop.rings === 'alone') {
        if (caller) return undefined
        caller = drop
      } else if (drop.dirty) return undefined
    }
    if (!caller) return undefined
    caller.rings = 'some'
    const name = caller.rungFor
    if (name === null || !isValidName(name) || !caller.bell || caller.condition !== 'fine') return undefined
    const directory = pins.of(caller)
    if (typeof directory === 'string' || directory.inode !== caller.inode) return undefined
    return { drop: caller, name, time: 0 }
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

  const mayLook = (drop: Drop) => !trouble.isTroubled(drop) && !isResting(drop)

  /** Whether the listings together show what was there at one moment. */
  const isOneMoment = (inbox: InboxState): boolean => {
    if (!inbox.drops.every(({ listing }) => !listing || isWhole(listing))) return false
    if (inbox.drops.length === 1 || isAnnounced(inbox)) return true
    let last = 0
    for (const drop of inbox.drops) if (drop.listing?.names.length) last = Math.max(last, drop.listedAs)
    return inbox.drops.every(drop => {
      if (!drop.listing || drop.listedAs >= last) return true
      const directory = pins.of(drop)
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
      wantLook(drop)
      return false
    })
  }

  /** False while it is not through. What is found lies in `drop.listing` until all of the inbox is listed. */
  const lookInto = (drop: Drop): boolean => {
    const directory = pins.of(drop)
    if (typeof directory === 'string') return cannotLook(drop, directory)
    let look: Look
    let listing: Listing | undefined
    try {
      look = drop.look ??= approach(drop, directory)
      listing = look.next(directory)
    } catch (error) {
      return cannotLook(drop, errorCode(error) === 'ENOENT' ? 'missing' : 'unreadable')
    }
    if (!listing) return false
    drop.look = undefined
    if (look.tookMs > 0) rest(drop, look.tookMs)
    drop.listing = listing
    drop.listedAs = ++listings
    understand(drop, directory, listing)
    return true
  }

  const cannotLook = (drop: Drop, why: PinFailure): true => {
    trouble.cannotRead(drop, why)
    bells.leave(drop)
    return true
  }

  /** The bell is hung first, so that nothing comes unnoticed between the look and the bell (lesson 17). */
  const approach = (drop: Drop, directory: PinnedDirectory) => {
    drop.dirty = false
    if (drop.troubles) drop.troubles.failed = false
    if (directory.inode !== drop.inode) {
      if (drop.inode !== 0 && drop.condition !== 'missing') {
        tell('replaced', drop, 'was replaced by another directory; it is watched anew')
      }
      bells.takeDown(drop)
      drop.inode = directory.inode
    }
    trouble.canRead(drop)
    if (!drop.bell && !drop.crowded) bells.hang(drop, directory)
    return beginLook(directory, Math.max(namesPerLook, 2 * waitingLimit))
  }

  const rest = (drop: Drop, lookedMs: number) => {
    const troubles = troublesOf(drop)
    troubles.resting = true
    timers.later(Math.min(maxRestMs, lookedMs * restFactor), () => {
      troubles.resting = false
      if (drop.dirty) makeReady(drop.inbox)
    })
  }

  const understand = (drop: Drop, directory: PinnedDirectory, { names, others }: Listing) => {
    const { rings, rungFor, suspect } = drop
    drop.rings = 'none'
    drop.suspect = false
    // So that the next sweep passes over it, unless a change of this very moment could hide behind the same time.
    if (now() - directory.mtimeMs > settledMs) drop.sweptMtimeMs = directory.mtimeMs
    if (names.length > crowd) {
      bells.takeDown(drop)
      drop.crowded = true
      wantLook(drop)
    } else if (drop.crowded) {
      drop.crowded = false
      wantLook(drop)
    }
    if (suspect && rings === 'none' && names.slice(0, crowd).some(name => hasWaited(directory, name))) {
      polls.missedEvent(drop)
    }
    // Our own claims ring, too; that proves nothing about the other side's posts.
    if (drop.inbox.polling?.demoted && rungFor !== null && names.includes(rungFor)) {
      polls.heardEvent(drop.inbox)
    }
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

  return {
    refill,
    distrustRings() {
      distrusted = listings
    },
  }
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

/** Names of one millisecond sort by their sequence number where they have one; the others are sorted once claimed. */
const compareEntries = (a: Entry, b: Entry): number =>
  a.time - b.time || (String(a.name) < String(b.name) ? -1 : 1)
