import { type DirectoryHandle, openDirectory } from './directory.ts'
import type { DirectoryHandles } from './directory-handles.ts'
import type { DirectoryHealth } from './directory-health.ts'
import type { DirectoryReporter } from './directory-reporter.ts'
import { createFsWatch } from './fs-watch.ts'
import { healthOf, type InboxState, pathOf, requestScan, type Subdirectory } from './inbox-state.ts'
import { watchAdvice } from './platform.ts'
import type { Polling } from './polling.ts'
import { deliversEvents } from './probe.ts'

/**
 * Decides which directories have a file watcher.
 *
 *   watched   events request a scan
 *             → crowded     many files: the scanner closes the watcher, and scans until few are left
 *             → paused      too many events: closed for 1 s, doubling up to 60 s; the inbox is polled
 *             → watched     the directory was moved, removed or replaced: released, scanned and watched again
 *   polled    the mount delivers no events, or the system refuses another watcher
 */
export interface Watchers {
  /** tests once, before the first scan, whether events arrive; without it a normal start would need two scans */
  probe(): Promise<void>
  /** starts watching, or polls the inbox if that is not possible */
  watch(subdirectory: Subdirectory, directory: DirectoryHandle): void
  unwatch(subdirectory: Subdirectory): void
  /** the directory may have been replaced: closes its watcher and requests the scan that watches it again */
  rewatch(subdirectory: Subdirectory): void
  /** closes everything that is open for the directory */
  release(subdirectory: Subdirectory): void
}

const probeMs = 250
const minPauseMs = 1000
const maxPauseMs = 60_000

export function createWatchers(options: {
  events: 'auto' | 'off'
  /** no writer has access to this directory, so none can disturb the probe */
  claimed: string
  clock(): number
  isStopped(): boolean
  reportDirectory: DirectoryReporter
  handles: DirectoryHandles
  polling: Polling
  directoryHealth: DirectoryHealth
  makeReady(inbox: InboxState): void
  /** so many events arrived at once that the kernel may have dropped some */
  burst(): void
}): Watchers {
  const { events, claimed, clock, reportDirectory, handles, polling, directoryHealth, makeReady } = options
  /** by device: whether events arrive, or a probe that is still running */
  const deviceDelivers = new Map<number, boolean | Promise<void>>()
  let claimedDevice: number | undefined
  let watchRefused = false

  const changed = (subdirectory: Subdirectory, name: string | null) => {
    if (directoryHealth.ignoresEvent(subdirectory)) return
    const isSingle =
      !subdirectory.scanRequested || (subdirectory.events === 'single' && subdirectory.lastEventName === name)
    subdirectory.scanRequested = true
    subdirectory.events = isSingle ? 'single' : 'several'
    subdirectory.lastEventName = name
    makeReady(subdirectory.inbox)
  }

  const unwatch = (subdirectory: Subdirectory) => {
    subdirectory.watcher?.close()
    subdirectory.watcher = undefined
  }

  const rewatch = (subdirectory: Subdirectory) => {
    unwatch(subdirectory)
    handles.release(subdirectory)
    requestScan(subdirectory)
    makeReady(subdirectory.inbox)
  }

  const flooded = (subdirectory: Subdirectory) => {
    unwatch(subdirectory)
    const health = healthOf(subdirectory)
    const { watchPause } = health
    const previousMs = watchPause && clock() - watchPause.until < maxPauseMs ? watchPause.ms : 0
    const ms = Math.min(maxPauseMs, Math.max(minPauseMs, previousMs * 2))
    health.watchPause = { until: clock() + ms, ms }
    reportDirectory(
      'too_many_events',
      subdirectory,
      `causes too many events; it is polled for ${ms / 1000} s instead of watched`,
    )
    polling.start(subdirectory.inbox)
    requestScan(subdirectory)
    makeReady(subdirectory.inbox)
  }

  const fsWatch = createFsWatch<Subdirectory>({ changed, lost: rewatch, flooded, burst: options.burst })

  const mayWatch = (subdirectory: Subdirectory, device: number): boolean => {
    if (events === 'off') return false
    const delivers = deviceDelivers.get(device)
    if (delivers === undefined) {
      const probePath = device === claimedDevice ? claimed : pathOf(subdirectory)
      deviceDelivers.set(device, probeDevice(device, probePath))
    }
    const watchPause = subdirectory.health?.watchPause
    return delivers === true && !(watchPause && clock() < watchPause.until)
  }

  const probeDevice = async (device: number, path: string) => {
    const delivers = await deliversEvents(path, probeMs)
    if (delivers === undefined) deviceDelivers.delete(device)
    else deviceDelivers.set(device, delivers)
    if (options.isStopped() || !delivers) return
    for (const inbox of polling.inboxes()) {
      for (const subdirectory of inbox.subdirectories) requestScan(subdirectory)
      makeReady(inbox)
    }
  }

  const refused = (subdirectory: Subdirectory, code: string) => {
    if (watchRefused) return
    watchRefused = true
    reportDirectory(
      'watch_refused',
      subdirectory,
      `cannot be watched (${code}): ${watchAdvice(code)}. Until then, directories without a watcher are polled`,
    )
  }

  return {
    async probe() {
      if (events === 'off') return
      const directory = openDirectory(claimed)
      if (typeof directory === 'string') return
      directory.close()
      claimedDevice = directory.device
      const delivers = await deliversEvents(claimed, probeMs)
      if (delivers !== undefined) deviceDelivers.set(directory.device, delivers)
    },
    watch(subdirectory, directory) {
      if (subdirectory.sweptOnly) return
      if (!mayWatch(subdirectory, directory.device)) return polling.start(subdirectory.inbox)
      const watcher = fsWatch.watch(directory, subdirectory)
      if (typeof watcher === 'string') {
        refused(subdirectory, watcher)
        polling.start(subdirectory.inbox)
        return
      }
      subdirectory.watcher = watcher
      polling.stopIfWatched(subdirectory.inbox)
    },
    unwatch,
    rewatch,
    release(subdirectory) {
      unwatch(subdirectory)
      handles.release(subdirectory)
      subdirectory.scan?.close()
      subdirectory.scan = undefined
      subdirectory.listing = undefined
    },
  }
}
