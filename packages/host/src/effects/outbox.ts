import type { Logger } from 'pino'
import type { Channel } from '../channels/types.ts'
import type { MessageRow, Store } from '../store/types.ts'

/**
 * Carries stored messages to their channels (promise 4): pending → sent, or, after growing pauses, failed. It runs
 * beside the intake and gives way to it (promise 6): while files are waiting it takes a handful at a time.
 */
export interface Outbox {
  kick(): void
  stop(): Promise<void>
}

const batch = 200
const batchWhileBusy = 20
const busyPauseMs = 100
/** long enough for messages that come together to be settled together */
const gatherMs = 20
const idlePauseMs = 1000
const attemptsBeforeFailing = 12
const longestPauseMs = 3_600_000

export function createOutbox(options: {
  store: Store
  channels: readonly Channel[]
  log: Logger
  intakeIsBusy(): boolean
  now(): number
}): Outbox {
  const { store, channels, log, intakeIsBusy, now } = options
  let timer: NodeJS.Timeout | undefined
  let timerAt = 0
  let working: Promise<void> | undefined
  let stopped = false

  const deliver = async (message: MessageRow) => {
    const channel = channels.find(candidate => candidate.reaches(message.jid))
    if (!channel) throw new Error('no channel reaches this chat')
    await channel.send(message)
  }

  const settled = async (message: MessageRow) => {
    const attempts = message.attempts + 1
    const unchanged = { id: message.id, attempts, nextAttemptAt: message.nextAttemptAt }
    try {
      await deliver(message)
      return { ...unchanged, status: 'sent' as const, error: null, sentAt: now() }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const failed = attempts >= attemptsBeforeFailing
      log.warn(
        { group: message.group, jid: message.jid, id: message.id, attempts, failed, reason },
        'a message was not delivered',
      )
      const nextAttemptAt = now() + Math.min(longestPauseMs, 1000 * 2 ** attempts)
      return {
        ...unchanged,
        nextAttemptAt,
        status: failed ? ('failed' as const) : ('pending' as const),
        error: reason,
        sentAt: null,
      }
    }
  }

  /** how long to pause before working again */
  const work = async (): Promise<number> => {
    const busy = intakeIsBusy()
    const due = store.dueMessages(now(), busy ? batchWhileBusy : batch)
    if (due.length === 0) return idlePauseMs
    store.settleMessages(await Promise.all(due.map(settled)))
    return busy ? busyPauseMs : gatherMs
  }

  const wakeIn = (ms: number) => {
    const at = performance.now() + ms
    if (timer && timerAt <= at) return
    clearTimeout(timer)
    timerAt = at
    timer = setTimeout(() => {
      timer = undefined
      working = work()
        .catch(error => {
          log.error({ err: error }, 'the outbox could not be worked on; it is tried again')
          return idlePauseMs
        })
        .then(pause => {
          working = undefined
          if (!stopped) wakeIn(pause)
        })
    }, ms)
  }

  return {
    kick() {
      if (!stopped && !working) wakeIn(intakeIsBusy() ? busyPauseMs : gatherMs)
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      await working
    },
  }
}
