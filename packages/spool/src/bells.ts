import { type PinnedDirectory, pinDirectory } from './directory.ts'
import { createDoorbells } from './doorbell.ts'
import { type Drop, type InboxState, pathOf, troublesOf, wantLook } from './drop.ts'
import type { Pins } from './pins.ts'
import type { Polls } from './polls.ts'
import { deliversEvents } from './probe.ts'
import type { Tell } from './tell.ts'
import type { Trouble } from './trouble.ts'

/** Each directory's bell: whether it can have one, when it comes down, and what a ring means. */
export interface Bells {
  /** asks before the first look whether events arrive, so that an ordinary start needs no second one */
  probe(): Promise<void>
  /** hangs its bell, or has its inbox polled where it cannot have one */
  hang(drop: Drop, directory: PinnedDirectory): void
  takeDown(drop: Drop): void
  /** it is no longer what its bell hangs at, and is looked into */
  lost(drop: Drop): void
  /** lets go of all that is held of it */
  leave(drop: Drop): void
}

const probeMs = 250
const minNoisyMs = 1000
const maxNoisyMs = 60_000

export function createBells(options: {
  events: 'auto' | 'off'
  /** where claimed files lie: no writer has a hand in what is asked there */
  claimed: string
  clock(): number
  isStopped(): boolean
  tell: Tell
  pins: Pins
  polls: Polls
  trouble: Trouble
  makeReady(inbox: InboxState): void
  /** so many events at once that some may be missing */
  deluge(): void
}): Bells {
  const { events, claimed, clock, tell, pins, polls, trouble, makeReady } = options
  const deviceDelivers = new Map<number, boolean | Promise<void>>()
  let claimedDevice: number | undefined
  let watchRefused = false

  const ring = (drop: Drop, name: string | null) => {
    if (trouble.ignoresRing(drop)) return
    const isAlone = !drop.dirty || (drop.rings === 'alone' && drop.rungFor === name)
    drop.dirty = true
    drop.rings = isAlone ? 'alone' : 'some'
    drop.rungFor = name
    makeReady(drop.inbox)
  }

  const takeDown = (drop: Drop) => {
    drop.bell?.close()
    drop.bell = undefined
  }

  const lost = (drop: Drop) => {
    takeDown(drop)
    pins.release(drop)
    wantLook(drop)
    makeReady(drop.inbox)
  }

  const noisy = (drop: Drop) => {
    takeDown(drop)
    const troubles = troublesOf(drop)
    const { noise } = troubles
    const before = noise && clock() - noise.until < maxNoisyMs ? noise.ms : 0
    const ms = Math.min(maxNoisyMs, Math.max(minNoisyMs, before * 2))
    troubles.noise = { until: clock() + ms, ms }
    tell('noisy', drop, `rings without end; its bell is taken down for ${ms / 1000} s and it is polled`)
    polls.begin(drop.inbox)
    wantLook(drop)
    makeReady(drop.inbox)
  }

  const doorbells = createDoorbells<Drop>({ ring, lost, noisy, deluge: options.deluge })

  const mayHang = (drop: Drop, device: number): boolean => {
    if (events === 'off') return false
    const delivers = deviceDelivers.get(device)
    if (delivers === undefined) {
      const place = device === claimedDevice ? claimed : pathOf(drop)
      deviceDelivers.set(device, probeDevice(device, place))
    }
    const noise = drop.troubles?.noise
    return delivers === true && !(noise && clock() < noise.until)
  }

  const probeDevice = async (device: number, path: string) => {
    const delivers = await deliversEvents(path, probeMs)
    if (delivers === undefined) deviceDelivers.delete(device)
    else deviceDelivers.set(device, delivers)
    if (options.isStopped() || !delivers) return
    for (const inbox of polls.polled()) {
      for (const drop of inbox.drops) wantLook(drop)
      makeReady(inbox)
    }
  }

  const refused = (drop: Drop, code: string) => {
    if (watchRefused) return
    watchRefused = true
    const advice =
      code === 'ENOSPC'
        ? 'raise fs.inotify.max_user_watches'
        : code === 'EMFILE'
          ? 'raise fs.inotify.max_user_instances or the limit of open files'
          : 'see the code'
    tell(
      'watch_refused',
      drop,
      `cannot be watched (${code}): ${advice}. Until then such directories are polled`,
    )
  }

  return {
    async probe() {
      if (events === 'off') return
      const directory = pinDirectory(claimed)
      if (typeof directory === 'string') return
      directory.close()
      claimedDevice = directory.device
      const delivers = await deliversEvents(claimed, probeMs)
      if (delivers !== undefined) deviceDelivers.set(directory.device, delivers)
    },
    hang(drop, directory) {
      if (drop.sweptOnly) return
      if (!mayHang(drop, directory.device)) return polls.begin(drop.inbox)
      const bell = doorbells.hang(directory, drop)
      if (typeof bell === 'string') {
        refused(drop, bell)
        polls.begin(drop.inbox)
        return
      }
      drop.bell = bell
      polls.considerEvents(drop.inbox)
    },
    takeDown,
    lost,
    leave(drop) {
      takeDown(drop)
      pins.release(drop)
      drop.look?.close()
      drop.look = undefined
      drop.listing = undefined
    },
  }
}
