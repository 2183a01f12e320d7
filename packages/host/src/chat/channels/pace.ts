/**
 * How much one account may say in all its chats together. Whoever has something to say asks for a turn, and gets it in the
 * order of asking: a chat that asks for one message at a time gets no more than any other. A turn is
 *
 *   given     at once, while the account has said less than it may, and the platform has not asked it to wait
 *   waiting   otherwise, until there is room, or the platform's wait is over
 */
export interface Pace {
  /** true: it had to be waited for. Resolves at once when the signal is aborted; whoever asked looks at that. */
  turn(signal: AbortSignal): Promise<boolean>
  /** the account has said something that nobody asked a turn for */
  spend(messages: number): void
  /** the platform has asked the account to wait for so long */
  hold(ms: number): void
  status(): PaceStatus
}

export interface PaceStatus {
  /** so many messages in so many milliseconds; undefined: only what the platform asks for */
  limit: PaceLimit | undefined
  /** chats that wait for their turn */
  waiting: number
}

export interface PaceLimit {
  messages: number
  perMs: number
}

/** Whatever a platform says: it is asked again after an hour at the latest. */
const longestHoldMs = 3_600_000

/** `limit` left out: nothing is held back until the platform asks for it. */
export function createPace({ limit, now }: { limit?: PaceLimit; now(): number }): Pace {
  const eachMs = limit ? limit.perMs / limit.messages : 0
  const burstMs = limit ? limit.perMs - eachMs : 0
  const waiting = new Set<() => void>()
  /** when nothing that was said counts any more */
  let spentUntil = 0
  let heldUntil = 0
  let timer: NodeJS.Timeout | undefined

  const waitMs = () => Math.max(heldUntil, spentUntil - burstMs) - now()
  const spend = (messages: number) => {
    spentUntil = Math.max(spentUntil, now()) + messages * eachMs
  }
  const giveTurns = () => {
    clearTimeout(timer)
    for (const give of waiting) {
      const ms = waitMs()
      if (ms > 0) {
        timer = setTimeout(giveTurns, ms)
        return
      }
      waiting.delete(give)
      spend(1)
      give()
    }
  }

  return {
    async turn(signal) {
      if (signal.aborted) return false
      if (waiting.size === 0 && waitMs() <= 0) {
        spend(1)
        return false
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const withdraw = () => {
        waiting.delete(resolve)
        resolve()
        giveTurns()
      }
      waiting.add(resolve)
      signal.addEventListener('abort', withdraw, { once: true })
      giveTurns()
      await promise
      signal.removeEventListener('abort', withdraw)
      return true
    },
    spend,
    hold(ms) {
      heldUntil = Math.max(heldUntil, now() + Math.min(ms, longestHoldMs))
    },
    status: () => ({ limit, waiting: waiting.size }),
  }
}
