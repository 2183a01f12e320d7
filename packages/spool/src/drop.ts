import type { PinFailure, PinnedDirectory } from './directory.ts'
import type { Doorbell } from './doorbell.ts'
import type { Listing, Look } from './listing.ts'
import type { Pace } from './pace.ts'
import type { Inbox } from './types.ts'

/** One directory of an inbox, and what is known of it. */
export interface Drop {
  readonly inbox: InboxState
  readonly name: string
  readonly path: string
  /** has no bell, whatever the mount can do */
  readonly sweptOnly: boolean
  /** of the directory that was last looked into; another one means that it was replaced */
  inode: number
  bell: Doorbell | undefined
  /** kept open between looks while its bell tells when it is replaced */
  pin: PinnedDirectory | undefined
  condition: 'unseen' | 'fine' | 'unclaimable' | PinFailure
  /** somebody rang, or it is time to look */
  dirty: boolean
  /** so full that its bell was taken down; looked into again and again until it is calm */
  crowded: boolean
  /** the directory's time when it was last swept, to see changes that did not ring */
  sweptMtimeMs: number
  suspect: boolean
  rung: boolean
  /** what the last ring was for, to see whether it was for a file that came or for one that we took */
  rungFor: string | null
  /** a look that is not through, and the listing of one that is, until the inbox's other directories are listed too */
  look: Look | undefined
  listing: Listing | undefined
  /** which of all listings it was: later ones have a higher number */
  listedAs: number
  /** a directory that takes long to list is not listed all the time */
  resting: boolean
  /** something in it could not be claimed since the last look */
  failed: boolean
  failedAt: number
  retryAt: number
  retryMs: number
  /** rang without end: no bell until then */
  noise: { until: number; ms: number } | undefined
  tidiedAt: number
}

export interface Entry {
  drop: Drop
  name: string | Buffer
  time: number
}

export interface InboxState {
  readonly id: string
  readonly drops: Drop[]
  /** listed and not yet claimed, in order, from `head` on */
  queue: Entry[]
  head: number
  /** listed, over the limit, to be thrown away */
  shed: Entry[]
  /** thrown away, and not reported yet */
  shedCount: number
  /** when the look that is under way began, and when the very first one did */
  lookBegan: number | undefined
  firstLookBegan: number | undefined
  /** everything that was there at the first look has been listed */
  caughtUp: boolean
  ready: boolean
  parked: boolean
  removed: boolean
  /** true until the files that were there when it was added have been handed over */
  fresh: boolean
  /** files handed back as half-written */
  waiting: number
  /** present while the inbox is polled */
  pace: Pace | undefined
  pollAt: number
  demoted: boolean
  goodRings: number
}

export function createInboxState(inbox: Inbox): InboxState {
  const state: InboxState = {
    id: inbox.id,
    drops: [],
    queue: [],
    head: 0,
    shed: [],
    shedCount: 0,
    lookBegan: undefined,
    firstLookBegan: undefined,
    caughtUp: false,
    ready: false,
    parked: false,
    removed: false,
    fresh: true,
    waiting: 0,
    pace: undefined,
    pollAt: 0,
    demoted: false,
    goodRings: 0,
  }
  for (const name of inbox.drops) {
    state.drops.push({
      inbox: state,
      name,
      path: `${inbox.path}/${name}`,
      sweptOnly: inbox.sweptOnly?.includes(name) ?? false,
      inode: 0,
      bell: undefined,
      pin: undefined,
      condition: 'unseen',
      dirty: true,
      crowded: false,
      sweptMtimeMs: 0,
      suspect: false,
      rung: false,
      rungFor: null,
      look: undefined,
      listing: undefined,
      listedAs: 0,
      resting: false,
      failed: false,
      failedAt: 0,
      retryAt: 0,
      retryMs: 250,
      noise: undefined,
      tidiedAt: 0,
    })
  }
  return state
}
