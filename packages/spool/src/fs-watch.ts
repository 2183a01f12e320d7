import { type FSWatcher, watch } from 'node:fs'
import { type DirectoryHandle, errorCode } from './directory.ts'
import { isPostedName } from './names.ts'

/**
 * Wraps Node's `fs.watch`. An event only means "scan this directory": its file name may be wrong, late or repeated, and
 * the kernel drops events without notice when its queue is full. Events for temporary files are filtered out here.
 *
 * All watchers share two listeners, because with tens of thousands of directories every object per watcher counts.
 *
 * The event loop reads events for as long as there are any. A writer that creates them faster than they are read would
 * block everything else, so `flooded` tells the owner to close that watcher.
 */
export interface Watcher {
  close(): void
}

export interface FsWatch<Owner> {
  /** returns the watcher, or the error code if the system refuses to watch */
  watch(directory: DirectoryHandle, owner: Owner): Watcher | string
}

export interface WatchHandlers<Owner> {
  changed(owner: Owner, name: string | null): void
  /** the watcher failed, or the directory itself was moved, removed or got other permissions: watch it again */
  lost(owner: Owner): void
  /** events arrive faster than they can be read */
  flooded(owner: Owner): void
  /** so many events of all owners arrived at once that the kernel may have dropped some */
  burst(): void
}

const watchOptions = { persistent: false } as const

/** More than the kernel's queue holds, so a watcher only reaches it if events are added while we read them. */
const floodLimit = 16_384
/** Far less than the kernel's queue holds, even where an administrator made the queue small. */
const burstLimit = 256
/** The counters are reset once per event loop round, but only if the round had this many events. */
const resetFrom = 32

export function createFsWatch<Owner>({
  changed,
  lost,
  flooded,
  burst,
}: WatchHandlers<Owner>): FsWatch<Owner> {
  const owners = new WeakMap<FSWatcher, Owner>()
  /** events of this event loop round, plus up to `resetFrom` of earlier rounds */
  let eventCount = 0
  /** events per watcher, counted only after `burstLimit` */
  const counts = new Map<FSWatcher, number>()
  const reset = () => {
    eventCount = 0
    counts.clear()
  }
  const isFlooding = (watcher: FSWatcher): boolean => {
    if (eventCount === burstLimit) burst()
    if (eventCount <= burstLimit) return false
    const count = (counts.get(watcher) ?? 0) + 1
    counts.set(watcher, count)
    return count === floodLimit
  }

  function onEvent(this: FSWatcher, _event: string, name: string | null) {
    const owner = owners.get(this)
    if (owner === undefined) return
    if (++eventCount === resetFrom) setImmediate(reset)
    if (isFlooding(this)) flooded(owner)
    // A new directory may have reused the inode; this watcher would never report its events.
    else if (name !== null && isDirectoryItself(name)) lost(owner)
    else if (name === null || isPostedName(name)) changed(owner, name)
  }
  function onError(this: FSWatcher) {
    const owner = owners.get(this)
    if (owner !== undefined) lost(owner)
  }

  return {
    watch(directory, owner) {
      try {
        // Watching through the handle ensures that a link put in the directory's place is not watched instead.
        const watcher = watch(directory.path, watchOptions, onEvent)
        watcher.on('error', onError)
        owners.set(watcher, owner)
        return watcher
      } catch (error) {
        return errorCode(error)
      }
    },
  }
}

/** An event about the directory itself carries the last part of the watched path, which is the handle's number. */
const isDirectoryItself = (name: string) => /^\d+$/.test(name)
