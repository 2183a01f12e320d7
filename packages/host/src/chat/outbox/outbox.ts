import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Change, Settled } from '../../store/settled.ts'
import type { MessageRow, Store } from '../../store/types.ts'
import type { Channel } from '../channels/types.ts'
import { attempt } from './delivery.ts'
import { createLanes, type Lane } from './lanes.ts'

/**
 * Carries stored messages to their channels (promise 4): pending → sent, or, after growing pauses, failed. It runs
 * beside the intake and gives way to it (promise 6): while files are waiting it takes a handful at a time.
 *
 * Each chat has a lane of its own. A message that is slow, or has to be tried again, holds back the later ones of its
 * chat and nobody else's. What waits in a lane is noted as parked, so that the search for new messages goes
 * on behind it: pending, one attempt, no error, and a time at which nobody will have to look for it.
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
/** chats of one channel that are served at the same time */
const workersPerChannel = 16
/** messages of one chat before another has its turn */
const turn = 20
const farewellMs = 2000
const firstLook = 1000

export function createOutbox(options: {
  store: Store
  channels: readonly Channel[]
  log: Logger
  intakeIsBusy(): boolean
  now(): number
  /** what has become of messages, once it is durable */
  settled?(messages: readonly Settled[]): void
}): Outbox {
  const { store, channels, log, intakeIsBusy, now } = options
  const lanes = createLanes()
  /** lanes that wait for a worker, by channel, and how many workers it has */
  const pools = new Map<Channel | undefined, { queue: Lane[]; workers: number }>()
  const working = new Set<Promise<void>>()
  const unsaved = new Map<number, Settled & { told: boolean }>()
  let timer: NodeJS.Timeout | undefined
  let timerAt = 0
  let look: Promise<void> | undefined
  let begun = false
  let stopped = false

  const channelOf = (jid: string) => channels.find(candidate => candidate.reaches(jid))

  const note = (message: MessageRow, change: Change) => {
    unsaved.set(message.id, { message, change, told: true })
    // While a look is under way it settles this too; otherwise everybody has stopped waiting for it.
    if (!look && !stopped) wakeIn(gatherMs)
    if (change.error === null) return
    const { group, jid, id } = message
    const failed = change.status === 'failed'
    log[failed ? 'error' : 'warn'](
      { group, jid, id, attempts: change.attempts, failed, reason: change.error },
      'a message was not delivered',
    )
  }

  /** The first message of a lane, and then the next ones, as long as all goes well. */
  const serve = async (lane: Lane, channel: Channel | undefined) => {
    for (let served = 0; served < turn && !stopped; served++) {
      const id = lane.ids[0]
      if (id === undefined) return
      const message = lane.rows.get(id) ?? store.messages({ after: id - 1, limit: 1 })[0]
      if (message?.id !== id || message.status !== 'pending') {
        lanes.advance(lane)
        continue
      }
      const change = await attempt(message, channel, now)
      note(message, change)
      if (change.status === 'pending') {
        lanes.postpone(lane, { ...message, ...change })
        return
      }
      lanes.advance(lane)
    }
  }

  const work = async (channel: Channel | undefined, pool: { queue: Lane[]; workers: number }) => {
    for (let lane = pool.queue.shift(); lane && !stopped; lane = pool.queue.shift()) {
      lane.state = 'busy'
      try {
        await serve(lane, channel)
      } catch (error) {
        lane.notBefore = now() + idlePauseMs
        log.error(
          { err: error, jid: lane.jid },
          'the messages of a chat could not be seen to; it is tried again',
        )
      }
      const goesOn = lane.ids.length > 0 && lane.notBefore <= now()
      lane.state = goesOn ? 'queued' : 'resting'
      if (goesOn) pool.queue.push(lane)
    }
    pool.workers--
  }

  const startWork = (): Promise<void>[] => {
    const started: Promise<void>[] = []
    for (const lane of lanes.ready(now())) {
      const channel = channelOf(lane.jid)
      let pool = pools.get(channel)
      if (!pool) {
        pool = { queue: [], workers: 0 }
        pools.set(channel, pool)
      }
      lane.state = 'queued'
      pool.queue.push(lane)
    }
    for (const [channel, pool] of pools) {
      // Each takes its first lane from the queue at once.
      while (pool.workers < workersPerChannel && pool.queue.length > 0) {
        pool.workers++
        const worker = work(channel, pool).finally(() => working.delete(worker))
        working.add(worker)
        started.push(worker)
      }
    }
    return started
  }

  const save = () => {
    if (unsaved.size === 0) return
    const entries = [...unsaved.values()]
    store.settleMessages(entries.map(({ change }) => change))
    unsaved.clear()
    options.settled?.(entries.filter(({ told }) => told))
  }

  /** Whatever an earlier process had tried or parked is in a lane before anything new is. */
  const remember = () => {
    for (let limit = firstLook; ; limit *= 4) {
      const old = store.dueMessages(Number.MAX_SAFE_INTEGER, limit).filter(({ attempts }) => attempts > 0)
      if (old.length === limit) continue
      for (const message of old.toSorted((a, b) => a.id - b.id)) lanes.admit(message)
      return
    }
  }

  /** how long to pause before looking again */
  const lookOnce = async (): Promise<number> => {
    if (!begun) remember()
    begun = true
    const busy = intakeIsBusy()
    // What could not be settled is found once more, and must not be delivered once more.
    save()
    const due = store.dueMessages(now(), busy ? batchWhileBusy : batch, batchCharacters)
    for (const message of due.toSorted((a, b) => a.id - b.id)) lanes.admit(message)
    const started = startWork()
    if (started.length > 0) await oneOf(Promise.all(started), patienceMs)
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
    return busy ? busyPauseMs : gatherMs
  }

  const wakeIn = (ms: number) => {
    const at = performance.now() + ms
    if (timer && timerAt <= at) return
    clearTimeout(timer)
    timerAt = at
    timer = setTimeout(() => {
      timer = undefined
      look = lookOnce()
        .catch(error => {
          log.error({ err: error }, 'the outbox could not be worked on; it is tried again')
          return idlePauseMs
        })
        .then(pause => {
          look = undefined
          if (!stopped) wakeIn(unsaved.size > 0 ? Math.min(pause, busyPauseMs) : pause)
        })
    }, ms)
  }

  return {
    kick() {
      if (!stopped && !look) wakeIn(intakeIsBusy() ? busyPauseMs : gatherMs)
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      await look
      if (working.size > 0) await oneOf(Promise.all(working), farewellMs)
      try {
        save()
      } catch (error) {
        log.error({ err: error }, 'what was delivered last could not be noted; it will be delivered again')
      }
    },
  }
}

/** Waits, and not for ever. */
async function oneOf(work: Promise<unknown>, ms: number): Promise<void> {
  const enough = new AbortController()
  const pause = sleep(ms, undefined, { signal: enough.signal }).catch(() => undefined)
  await Promise.race([work, pause])
  enough.abort()
}
