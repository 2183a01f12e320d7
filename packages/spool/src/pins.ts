import { type PinFailure, type PinnedDirectory, pinDirectory } from './directory.ts'
import { type Drop, pathOf } from './drop.ts'

/**
 * The directories' handles. One is kept while the directory's bell tells when it is moved, removed or replaced, so that
 * a lone file costs no opening; without a bell it is good for one turn.
 */
export interface Pins {
  of(drop: Drop): PinnedDirectory | PinFailure
  release(drop: Drop): void
  releaseIdle(): void
  /** those that are held */
  held(): Iterable<Drop>
}

/** Handles kept between turns, out of the few thousand a process may have. */
const limit = 32

export function createPins(): Pins {
  const pins = new Set<Drop>()

  const release = (drop: Drop) => {
    if (!drop.pin) return
    drop.pin.close()
    drop.pin = undefined
    pins.delete(drop)
  }

  return {
    of(drop) {
      if (drop.pin) return drop.pin
      const pin = pinDirectory(pathOf(drop))
      if (typeof pin === 'string') return pin
      drop.pin = pin
      pins.add(drop)
      return pin
    },
    release,
    releaseIdle() {
      let over = pins.size - limit
      for (const drop of pins) if (!drop.bell || over-- > 0) release(drop)
    },
    held: () => pins,
  }
}
