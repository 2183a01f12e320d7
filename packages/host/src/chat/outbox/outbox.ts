import type { Logger } from 'pino'
import { within } from '../../base/pause.ts'
import type { Change, MessageRow, Settled, Store } from '../../store/types.ts'
import type { Channel } from '../channels/types.ts'
import { createDeliveries } from './deliveries.ts'
import type { Lookup } from './delivery.ts'
import { createLanes } from './lanes.ts'

/**
 * Carries stored messages to their channels (promise 4). It runs beside the intake and gives way to it (promise 6):
 * while files are waiting it takes a handful at a time. Each chat has a lane of its own: a message that is slow, or has
 * to be tried again, holds back the later ones of its chat and nobody else's. A message is
 *
 *   state     in the store                                       leaves it when
 *   new       pending, no attempt                                the outbox looks: it is put into its chat's lane
 *   parked    pending, one attempt, no error, due in an hour     it is the first of its lane, and is tried
 *   failing   pending, an error, due after a growing pause       the pause is over, and it is tried again
 *   sent      sent                                               -
 *   failed    failed, after the last attempt                     -
 *
 * Parked messages keep the search for new ones short: it goes on behind them.
 */
export interface Outbox {
  kick(): void
  stop(): Promise<void>
}

const batch = 200
const batchWhileBusy = 20
/** of a batch, however few messages that are: one may hold a megabyte */
const batchCharacters = 2_000_000
const busyPauseMs = 100
/** long enough for messages that come together to be settled together */
const gatherMs = 20
const idlePauseMs = 1000
/** how long what was taken together is waited for, to be settled together */
const patienceMs = 25
const parkedMs = 3_600_000
const triedParkedMs = 60_000
const farewellMs = 2000
const firstScan = 1000

export function createOutbox(options: {
  store: Store
  channelOf(jid: string): Channel | undefined
  /** what else a delivery has to look up */
  lookup?: Omit<Lookup, 'now'>
  log: Logger
  intakeIsBusy(): boolean
  now(): number
  /** what has become of messages, once it is durable */
  settled?(messages: readonly Settled[]): void
}): Outbox {
  const { store, log, intakeIsBusy, now } = options
  const lanes = createLanes()
  const unsaved = new Map<number, Settled & { told: boolean }>()
  /** withdraws the next look */
  let withdraw: (() => void) | undefined
  let nextAt = 0
  /** A look that found something is followed by a pause, whoever kicks; after it, whoever says something is not kept waiting. */
  let restsUntil = 0
  let scan: Promise<void> | undefined
  let hasBegun = false
  let stopped = false

  const note = (message: MessageRow, change: Change) => {
    unsaved.set(message.id, { message, change, told: true })
    // While a look is under way it settles this too; otherwise everybody has stopped waiting for it.
    if (!scan && !stopped) wakeIn(gatherMs)
    if (change.error === null) return
    const { group, jid, id } = message
    const failed = change.status === 'failed'
    log[failed ? 'error' : 'warn'](
      { group, jid, id, attempts: change.attempts, failed, reason: change.error },
      'a message was not delivered',
    )
  }

  /** A message as it is now: what was just delivered has its id on the platform before that is saved. */
  const message = (id: number): MessageRow | undefined => {
    const saved = options.lookup?.message?.(id)
    return saved && { ...saved, ...unsaved.get(id)?.change }
  }
  const deliveries = createDeliveries({
    ...options,
    lookup: { ...options.lookup, message, now },
    lanes,
    note,
  })

  const save = () => {
    if (unsaved.size === 0) return
    const entries = [...unsaved.values()]
    store.settleMessages(entries.map(({ change }) => change))
    unsaved.clear()
    options.settled?.(entries.filter(({ told }) => told))
  }

  /** Whatever an earlier process had tried or parked is in a lane before anything new is. */
  const remember = () => {
    for (let limit = firstScan; ; limit *= 4) {
      const old = store.dueMessages(Number.MAX_SAFE_INTEGER, limit).filter(({ attempts }) => attempts > 0)
      if (old.length === limit) continue
      for (const message of old.toSorted((a, b) => a.id - b.id)) lanes.admit(message)
      return
    }
  }

  /** how long to pause before looking again */
  const scanOnce = async (): Promise<number> => {
    if (!hasBegun) remember()
    hasBegun = true
    const busy = intakeIsBusy()
    // What could not be settled is found once more, and must not be delivered once more.
    save()
    const due = store.dueMessages(now(), busy ? batchWhileBusy : batch, batchCharacters)
    for (const message of due.toSorted((a, b) => a.id - b.id)) lanes.admit(message)
    const delivering = deliveries.begin()
    if (delivering.length > 0) await within(patienceMs, Promise.all(delivering))
    for (const message of due) {
      if (unsaved.has(message.id) || !lanes.isKnown(message.id)) continue
      const { id, partsSent, partsTotal, error, sentAt } = message
      const attempts = Math.max(1, message.attempts)
      // Should we be killed meanwhile, one that was tried before is not to wait for long.
      const nextAttemptAt = now() + (error === null ? parkedMs : triedParkedMs)
      const change: Change = {
        ...{ id, status: 'pending', attempts, nextAttemptAt },
        ...{ partsSent, partsTotal, error, sentAt },
      }
      unsaved.set(id, { message, change, told: false })
    }
    save()
    if (due.length === 0) return idlePauseMs
    const pause = busy ? busyPauseMs : gatherMs
    restsUntil = performance.now() + pause
    return pause
  }

  const wakeIn = (ms: number) => {
    const at = performance.now() + ms
    if (withdraw && nextAt <= at) return
    withdraw?.()
    nextAt = at
    withdraw = ms > 0 ? later(ms, look) : soon(look)
  }

  const look = () => {
    withdraw = undefined
    scan = scanOnce()
      .catch(error => {
        log.error({ err: error }, 'the outbox could not be worked on; it is tried again')
        return idlePauseMs
      })
      .then(pause => {
        scan = undefined
        if (!stopped) wakeIn(unsaved.size > 0 ? Math.min(pause, busyPauseMs) : pause)
      })
  }

  return {
    kick() {
      if (!stopped && !scan) wakeIn(Math.max(0, restsUntil - performance.now()))
    },
    async stop() {
      stopped = true
      withdraw?.()
      await scan
      await within(farewellMs, deliveries.stop())
      try {
        save()
      } catch (error) {
        log.error({ err: error }, 'what was delivered last could not be noted; it will be delivered again')
      }
    },
  }
}

const later = (ms: number, work: () => void) => {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

/** A timer would take a millisecond, in which a message could be half-way to its platform. */
const soon = (work: () => void) => {
  const turn = setImmediate(work)
  return () => clearImmediate(turn)
}
