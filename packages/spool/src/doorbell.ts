import { type FSWatcher, watch } from 'node:fs'
import { errorCode, type PinnedDirectory } from './directory.ts'
import { isPostedName } from './names.ts'

/**
 * Events say "look", never what there is to see: names in them may be wrong, late, doubled or, when the kernel's
 * queue is full, silently missing (lesson 17). Rings for temporary files are not passed on.
 *
 * With tens of thousands of directories every object per bell counts, so all bells share their two listeners.
 *
 * The event loop reads events for as long as there are any. A writer that makes them faster than they are read would
 * have it do nothing else, so its bell comes down.
 */
export interface Doorbell {
  close(): void
}

export interface Doorbells<Owner> {
  /** the bell, or the error code of the watch that was refused */
  hang(directory: PinnedDirectory, owner: Owner): Doorbell | string
}

const quietly = { persistent: false } as const

export interface Ringing<Owner> {
  ring(owner: Owner, name: string | null): void
  /** the watch failed, or the directory itself was moved, removed or given other rights: the bell is hung again */
  lost(owner: Owner): void
  /** events come faster than they can be read */
  noisy(owner: Owner): void
  /** so many were waiting at once, of all owners, that the kernel may have had to drop some */
  deluge(): void
}

/** More than the kernel's queue holds: without a pause, so many can only be written while they are being read. */
const noise = 16_384
/** Far less than the queue holds, however small somebody has made it. */
const delugeFrom = 256
/** So many may be counted with those of another round. */
const few = 32

export function createDoorbells<Owner>({ ring, lost, noisy, deluge }: Ringing<Owner>): Doorbells<Owner> {
  const owners = new WeakMap<FSWatcher, Owner>()
  /** events of this round of the event loop, or a few more; and those of each bell beyond a deluge's beginning */
  let heard = 0
  const counts = new Map<FSWatcher, number>()
  const calm = () => {
    heard = 0
    counts.clear()
  }
  const isNoisy = (watcher: FSWatcher): boolean => {
    if (heard === delugeFrom) deluge()
    if (heard <= delugeFrom) return false
    const count = (counts.get(watcher) ?? 0) + 1
    counts.set(watcher, count)
    return count === noise
  }

  function changed(this: FSWatcher, _event: string, name: string | null) {
    const owner = owners.get(this)
    if (owner === undefined) return
    if (++heard === few) setImmediate(calm)
    if (isNoisy(this)) noisy(owner)
    // A new directory may have got its inode, and would never ring.
    else if (name !== null && isItself(name)) lost(owner)
    else if (name === null || isPostedName(name)) ring(owner, name)
  }
  function failed(this: FSWatcher) {
    const owner = owners.get(this)
    if (owner !== undefined) lost(owner)
  }

  return {
    hang(directory, owner) {
      try {
        // Watching through the handle keeps a link in the directory's place from being watched instead.
        const watcher = watch(directory.path, quietly, changed)
        watcher.on('error', failed)
        owners.set(watcher, owner)
        return watcher
      } catch (error) {
        return errorCode(error)
      }
    },
  }
}

/** An event of the directory itself carries the last part of the path it is watched by: the handle's number. */
const isItself = (name: string) => /^\d+$/.test(name)
