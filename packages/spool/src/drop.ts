import type { PinFailure, PinnedDirectory } from './directory.ts'
import type { Doorbell } from './doorbell.ts'
import type { Listing, Look } from './listing.ts'
import type { Pace } from './pace.ts'
import type { Inbox } from './types.ts'

/**
 * One directory of an inbox, and what is known of it. There may be tens of thousands: what only a few of them ever need
 * is kept apart.
 */
export interface Drop {
  readonly inbox: InboxState
  readonly name: string
  /** has no bell, whatever the mount can do */
  readonly sweptOnly: boolean
  /** of the directory that was last looked into; another one means that it was replaced */
  inode: number
  bell: Doorbell | undefined
  /** kept open between looks while its bell tells when it is replaced */
  pin: PinnedDirectory | undefined
  condition: 'unseen' | 'fine' | 'unclaimable' | PinFailure
  /** somebody rang, or it is time to look; said with `wantLook` */
  dirty: boolean
  /** since the last look: none; one for `rungFor`, and nothing else to look for; or some */
  rings: 'none' | 'alone' | 'some'
  /** what the last ring was for, to see whether it was for a file that came or for one that we took */
  rungFor: string | null
  /** so full that its bell was taken down; looked into again and again until it is calm */
  crowded: boolean
  /** the directory's time when it was last swept, to see changes that did not ring */
  sweptMtimeMs: number
  /** it has changed without a ring */
  suspect: boolean
  /** a look that is not through, and the listing of one that is, until the inbox's other directories are listed too */
  look: Look | undefined
  listing: Listing | undefined
  /** which of all listings it was: later ones have a higher number */
  listedAs: number
  /** when it was last freed of litter; in milliseconds the number would take room of its own */
  tidiedMinute: number
  troubles: Troubles | undefined
}

/** What went wrong with a directory at some time. */
export interface Troubles {
  /** it takes long to list, and is not listed all the time */
  resting: boolean
  /** something in it could not be claimed since the last look */
  failed: boolean
  failedAt: number
  retryAt: number
  retryMs: number
  /** rang without end: no bell until then */
  noise: { until: number; ms: number } | undefined
}

export interface Entry {
  drop: Drop
  name: string | Buffer
  time: number
}

export interface InboxState {
  readonly id: string
  readonly path: string
  readonly drops: readonly Drop[]
  /** listed and not yet claimed, in order, from `head` on; those before it are let go */
  queue: (Entry | undefined)[]
  head: number
  shed: Shed | undefined
  /** when the look that is under way began */
  lookBegan: number | undefined
  /** present until the files that were there when it was added have been handed over */
  arrival: Arrival | undefined
  ready: boolean
  parked: boolean
  removed: boolean
  /** files handed back as half-written */
  waiting: number
  /** present while the inbox is polled */
  polling: Polling | undefined
}

/** Files over the limit. */
interface Shed {
  /** listed, and to be thrown away */
  entries: Entry[]
  /** thrown away, and not reported yet */
  count: number
}

interface Arrival {
  firstLookBegan: number | undefined
  /** everything that was there at the first look has been listed */
  caughtUp: boolean
}

interface Polling {
  readonly pace: Pace
  at: number
  /** because files came without an event */
  demoted: boolean
  goodRings: number
}

export const retryFirstMs = 250

/** Shared by all that have nothing to take. */
const nothing: Entry[] = []

export function createInboxState({ id, path, drops, sweptOnly = [] }: Inbox): InboxState {
  const inbox: InboxState & { drops: readonly Drop[] } = {
    id,
    path,
    drops: [],
    queue: nothing,
    head: 0,
    shed: undefined,
    lookBegan: undefined,
    arrival: { firstLookBegan: undefined, caughtUp: false },
    ready: false,
    parked: false,
    removed: false,
    waiting: 0,
    polling: undefined,
  }
  inbox.drops = drops.map(name => createDrop(inbox, name, sweptOnly.includes(name)))
  return inbox
}

const createDrop = (inbox: InboxState, name: string, sweptOnly: boolean): Drop => ({
  inbox,
  name,
  sweptOnly,
  inode: 0,
  bell: undefined,
  pin: undefined,
  condition: 'unseen',
  dirty: true,
  rings: 'none',
  rungFor: null,
  crowded: false,
  sweptMtimeMs: 0,
  suspect: false,
  look: undefined,
  listing: undefined,
  listedAs: 0,
  tidiedMinute: 0,
  troubles: undefined,
})

export const pathOf = (drop: Drop): string => `${drop.inbox.path}/${drop.name}`

export function troublesOf(drop: Drop): Troubles {
  drop.troubles ??= {
    resting: false,
    failed: false,
    failedAt: 0,
    retryAt: 0,
    retryMs: retryFirstMs,
    noise: undefined,
  }
  return drop.troubles
}

export function wantLook(drop: Drop): void {
  drop.dirty = true
  if (drop.rings === 'alone') drop.rings = 'some'
}

export const isBeingListed = (drop: Drop): boolean => drop.look !== undefined
export const isResting = (drop: Drop): boolean => drop.troubles?.resting === true
export const wantsLook = (drop: Drop): boolean => isBeingListed(drop) || (drop.dirty && !isResting(drop))

export function emptyQueue(inbox: InboxState): void {
  inbox.queue = nothing
  inbox.head = 0
}
