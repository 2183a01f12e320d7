import { lstatSync } from 'node:fs'
import type { DirectoryHandles } from './directory-handles.ts'
import type { DirectoryHealth } from './directory-health.ts'
import { type InboxState, isScanning, pathOf, requestScan, type Subdirectory } from './inbox-state.ts'
import type { Watchers } from './watchers.ts'

/**
 * A safety net for missed events: at long intervals it checks every directory that is not polled, and requests a scan
 * if it has changed. It also retries directories that failed.
 */
export interface Sweeper {
  start(): void
  stop(): void
}

const longestTickMs = 500
/** A sweep is spread over at least this many ticks. */
const fewestTicks = 4
/** Within one tick of the file system clock, a second change would have the same mtime. */
export const settledMs = 1000

export function createSweeper(options: {
  sweepMs: number
  now(): number
  inboxes(): Iterable<InboxState>
  watchers: Watchers
  handles: DirectoryHandles
  directoryHealth: DirectoryHealth
  makeReady(inbox: InboxState): void
}): Sweeper {
  const { sweepMs, now, watchers, handles, directoryHealth, makeReady } = options
  const tickMs = Math.min(longestTickMs, sweepMs / fewestTicks)
  let timer: NodeJS.Timeout | undefined
  let order: InboxState[] = []
  let position = 0

  const tick = () => {
    directoryHealth.retry(subdirectory => {
      requestScan(subdirectory)
      makeReady(subdirectory.inbox)
    })
    // The kernel reports a removed directory only after its last handle is closed, so open ones are checked here.
    for (const subdirectory of handles.all())
      if (changeTime(subdirectory) === undefined) watchers.rewatch(subdirectory)
    if (position >= order.length) {
      order = [...options.inboxes()]
      position = 0
    }
    const slice = Math.ceil((order.length * tickMs) / sweepMs)
    for (let i = 0; i < slice && position < order.length; i++, position++) {
      const inbox = order[position]
      if (inbox && !inbox.removed && !inbox.polling) sweep(inbox)
    }
  }

  const sweep = (inbox: InboxState) => {
    for (const subdirectory of inbox.subdirectories) {
      if (
        subdirectory.scanRequested ||
        subdirectory.crowded ||
        isScanning(subdirectory) ||
        directoryHealth.isFailing(subdirectory)
      )
        continue
      const changed = changeTime(subdirectory)
      if (changed === undefined) {
        watchers.rewatch(subdirectory)
        continue
      }
      if (changed === subdirectory.sweptMtimeMs) continue
      subdirectory.changedWithoutEvent = subdirectory.watcher !== undefined
      subdirectory.sweptMtimeMs = now() - changed < settledMs ? 0 : changed
      requestScan(subdirectory)
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

const changeTime = (subdirectory: Subdirectory): number | undefined => {
  try {
    const about = lstatSync(pathOf(subdirectory))
    return about.ino === subdirectory.inode ? about.mtimeMs : undefined
  } catch {
    // The scan that follows reports why.
    return undefined
  }
}
