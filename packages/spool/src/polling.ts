import type { DirectoryReporter } from './directory-reporter.ts'
import { type InboxState, requestScan, type Subdirectory } from './inbox-state.ts'
import { createPollInterval } from './poll-interval.ts'
import type { Timers } from './timers.ts'
import type { Report, WatchMode } from './types.ts'

/**
 * Polls the inboxes for which events are missing or cannot be trusted.
 *
 *   events   → polling   a directory has no watcher
 *            → demoted   a file came without an event
 *   polling  → events    every directory has a watcher
 *   demoted  → polling   three events led to a file, without a miss in between; then → events as above
 */
export interface Polling {
  start(inbox: InboxState): void
  /** stops polling if every directory has a watcher */
  stopIfWatched(inbox: InboxState): void
  missedEvent(subdirectory: Subdirectory): void
  receivedEvent(inbox: InboxState): void
  /** the inbox was scanned; `found`: there were files */
  scanned(inbox: InboxState, found: boolean): void
  forget(inbox: InboxState): void
  inboxes(): Iterable<InboxState>
}

const goodEventsNeeded = 3

export function createPolling(options: {
  minMs: number
  maxMs: number
  clock(): number
  timers: Timers
  reportDirectory: DirectoryReporter
  report(report: Report): void
  isStarted(): boolean
  isBackingOff(subdirectory: Subdirectory, time: number): boolean
  makeReady(inbox: InboxState): void
}): Polling {
  const { minMs, maxMs, clock, timers, reportDirectory, report, makeReady } = options
  const inboxes = new Set<InboxState>()
  let timer: NodeJS.Timeout | undefined
  let timerAt = Number.POSITIVE_INFINITY

  const start = (inbox: InboxState) => {
    if (inbox.polling) return
    const interval = createPollInterval(minMs, maxMs)
    inbox.polling = { interval, at: 0, demoted: false, goodEvents: 0 }
    inboxes.add(inbox)
    pollIn(inbox, interval.ms)
    reportMode(inbox, 'polling')
  }

  const stopIfWatched = (inbox: InboxState) => {
    if (!inbox.polling || inbox.polling.demoted || inbox.subdirectories.some(isUnwatched)) return
    inbox.polling = undefined
    inboxes.delete(inbox)
    reportMode(inbox, 'events')
  }

  const reportMode = (inbox: InboxState, mode: WatchMode) => {
    if (!options.isStarted() || inbox.backlog) return
    report({
      kind: 'mode',
      inbox: inbox.id,
      mode,
      message:
        mode === 'events'
          ? `${inbox.id} is watched with file events.`
          : `${inbox.id} is polled, because file events do not arrive or cannot be trusted.`,
    })
  }

  const pollIn = (inbox: InboxState, ms: number) => {
    if (!inbox.polling) return
    inbox.polling.at = clock() + ms
    wakeAt(inbox.polling.at, ms)
  }

  const wakeAt = (at: number, ms: number) => {
    if (at >= timerAt) return
    timers.cancel(timer)
    timerAt = at
    timer = timers.later(Math.max(1, ms), pollDue)
  }

  const pollDue = () => {
    timerAt = Number.POSITIVE_INFINITY
    const time = clock()
    let earliest = Number.POSITIVE_INFINITY
    for (const inbox of inboxes) {
      if (!inbox.polling) continue
      if (inbox.polling.at <= time) {
        for (const subdirectory of inbox.subdirectories)
          if (!options.isBackingOff(subdirectory, time)) requestScan(subdirectory)
        inbox.polling.at = time + maxMs
        makeReady(inbox)
      }
      earliest = Math.min(earliest, inbox.polling.at)
    }
    wakeAt(earliest, earliest - time)
  }

  return {
    start,
    stopIfWatched,
    missedEvent(subdirectory) {
      const { inbox } = subdirectory
      if (!inbox.polling?.demoted)
        reportDirectory('missed_event', subdirectory, 'received a file without an event')
      start(inbox)
      if (!inbox.polling) return
      inbox.polling.demoted = true
      inbox.polling.goodEvents = 0
    },
    receivedEvent(inbox) {
      if (!inbox.polling?.demoted || ++inbox.polling.goodEvents < goodEventsNeeded) return
      inbox.polling.demoted = false
      stopIfWatched(inbox)
    },
    scanned(inbox, found) {
      if (!inbox.polling) return
      const { interval } = inbox.polling
      if (found) interval.reset()
      else interval.increase()
      pollIn(inbox, interval.ms)
    },
    forget: inbox => void inboxes.delete(inbox),
    inboxes: () => inboxes,
  }
}

const isUnwatched = (subdirectory: Subdirectory) =>
  subdirectory.condition === 'ok' && !subdirectory.watcher && !subdirectory.crowded && !subdirectory.sweptOnly
