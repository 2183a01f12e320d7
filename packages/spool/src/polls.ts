import { type Drop, type InboxState, wantLook } from './drop.ts'
import { createPace } from './pace.ts'
import type { Tell } from './tell.ts'
import type { Timers } from './timers.ts'
import type { Report, WatchMode } from './types.ts'

/**
 * Inboxes that are looked into at intervals: events do not reach them, or cannot be relied on. Files that came without
 * one demote an inbox; some events in a row that led to a file bring it back.
 */
export interface Polls {
  begin(inbox: InboxState): void
  /** ends it, if every directory is heard of by events */
  considerEvents(inbox: InboxState): void
  missedEvent(drop: Drop): void
  heardEvent(inbox: InboxState): void
  /** it was looked into, and files were found or not */
  looked(inbox: InboxState, found: boolean): void
  forget(inbox: InboxState): void
  polled(): Iterable<InboxState>
}

const goodRingsNeeded = 3

export function createPolls(options: {
  minMs: number
  maxMs: number
  clock(): number
  timers: Timers
  tell: Tell
  report(report: Report): void
  isStarted(): boolean
  isWaiting(drop: Drop, time: number): boolean
  makeReady(inbox: InboxState): void
}): Polls {
  const { minMs, maxMs, clock, timers, tell, report, makeReady } = options
  const polled = new Set<InboxState>()
  let timer: NodeJS.Timeout | undefined
  let timerAt = Number.POSITIVE_INFINITY

  const begin = (inbox: InboxState) => {
    if (inbox.polling) return
    const pace = createPace(minMs, maxMs)
    inbox.polling = { pace, at: 0, demoted: false, goodRings: 0 }
    polled.add(inbox)
    pollIn(inbox, pace.everyMs)
    reportMode(inbox, 'polling')
  }

  const considerEvents = (inbox: InboxState) => {
    if (!inbox.polling || inbox.polling.demoted || inbox.drops.some(isUnheard)) return
    inbox.polling = undefined
    polled.delete(inbox)
    reportMode(inbox, 'events')
  }

  const reportMode = (inbox: InboxState, mode: WatchMode) => {
    if (!options.isStarted() || inbox.arrival) return
    report({
      kind: 'mode',
      inbox: inbox.id,
      mode,
      message:
        mode === 'events'
          ? `${inbox.id} is watched by events.`
          : `${inbox.id} is polled: events do not reach it, or cannot be relied on.`,
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
    for (const inbox of polled) {
      if (!inbox.polling) continue
      if (inbox.polling.at <= time) {
        for (const drop of inbox.drops) if (!options.isWaiting(drop, time)) wantLook(drop)
        inbox.polling.at = time + maxMs
        makeReady(inbox)
      }
      earliest = Math.min(earliest, inbox.polling.at)
    }
    wakeAt(earliest, earliest - time)
  }

  return {
    begin,
    considerEvents,
    missedEvent(drop) {
      const { inbox } = drop
      if (!inbox.polling?.demoted) tell('missed_event', drop, 'received a file without an event')
      begin(inbox)
      if (!inbox.polling) return
      inbox.polling.demoted = true
      inbox.polling.goodRings = 0
    },
    heardEvent(inbox) {
      if (!inbox.polling?.demoted || ++inbox.polling.goodRings < goodRingsNeeded) return
      inbox.polling.demoted = false
      considerEvents(inbox)
    },
    looked(inbox, found) {
      if (!inbox.polling) return
      const { pace } = inbox.polling
      if (found) pace.found()
      else pace.foundNothing()
      pollIn(inbox, pace.everyMs)
    },
    forget: inbox => void polled.delete(inbox),
    polled: () => polled,
  }
}

const isUnheard = (drop: Drop) => drop.condition === 'fine' && !drop.bell && !drop.crowded && !drop.sweptOnly
