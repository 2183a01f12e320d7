import { lstatSync } from 'node:fs'
import type { Bells } from './bells.ts'
import { type Drop, type InboxState, isBeingListed, pathOf, wantLook } from './drop.ts'
import type { Pins } from './pins.ts'
import type { Trouble } from './trouble.ts'

/**
 * Whatever the bells do, every directory is asked at long intervals whether it has changed, and looked into if so; those
 * in trouble are tried again.
 */
export interface Sweeps {
  start(): void
  stop(): void
}

const longestTickMs = 500
/** A sweep takes at least so many ticks. */
const fewestTicks = 4
/** Another change in the same tick of the file system's clock would look the same. */
export const settledMs = 1000

export function createSweeps(options: {
  sweepMs: number
  now(): number
  inboxes(): Iterable<InboxState>
  bells: Bells
  pins: Pins
  trouble: Trouble
  makeReady(inbox: InboxState): void
}): Sweeps {
  const { sweepMs, now, bells, pins, trouble, makeReady } = options
  const tickMs = Math.min(longestTickMs, sweepMs / fewestTicks)
  let timer: NodeJS.Timeout | undefined
  let order: InboxState[] = []
  let at = 0

  const tick = () => {
    trouble.retry(drop => {
      wantLook(drop)
      makeReady(drop.inbox)
    })
    // The kernel tells of a removed directory only once nobody holds it any more.
    for (const drop of pins.held()) if (changeOf(drop) === undefined) bells.lost(drop)
    if (at >= order.length) {
      order = [...options.inboxes()]
      at = 0
    }
    const slice = Math.ceil((order.length * tickMs) / sweepMs)
    for (let i = 0; i < slice && at < order.length; i++, at++) {
      const inbox = order[at]
      if (inbox && !inbox.removed && !inbox.polling) sweep(inbox)
    }
  }

  const sweep = (inbox: InboxState) => {
    for (const drop of inbox.drops) {
      if (drop.dirty || drop.crowded || isBeingListed(drop) || trouble.isTroubled(drop)) continue
      const changed = changeOf(drop)
      if (changed === undefined) {
        bells.lost(drop)
        continue
      }
      if (changed === drop.sweptMtimeMs) continue
      drop.suspect = drop.bell !== undefined
      drop.sweptMtimeMs = now() - changed < settledMs ? 0 : changed
      wantLook(drop)
      makeReady(inbox)
    }
  }

  return {
    start() {
      timer = setInterval(tick, tickMs)
    },
    stop: () => clearInterval(timer),
  }
}

const changeOf = (drop: Drop): number | undefined => {
  try {
    const about = lstatSync(pathOf(drop))
    return about.ino === drop.inode ? about.mtimeMs : undefined
  } catch {
    // The look that follows finds out, and reports it.
    return undefined
  }
}
