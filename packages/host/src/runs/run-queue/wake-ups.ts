import type { Logger } from 'pino'

/** Decides when the queue is checked: soon after a kick, after a pause, and again a second after a check that failed. */
export interface WakeUps {
  kick(): void
  /** `first` is called right before the check */
  kickIn(ms: number, first?: () => void): void
  isStopped(): boolean
  stop(): void
}

const afterFailureMs = 1000

export function createWakeUps(check: () => void, log: Pick<Logger, 'error'>): WakeUps {
  const timers = new Set<NodeJS.Timeout>()
  let isScheduled = false
  let isStopped = false

  const kick = () => {
    if (isScheduled || isStopped) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      if (isStopped) return
      try {
        check()
      } catch (error) {
        log.error({ err: error }, 'the run queue could not be checked; it is tried again in a second')
        kickIn(afterFailureMs)
      }
    })
  }
  const kickIn: WakeUps['kickIn'] = (ms, first) => {
    if (isStopped) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      first?.()
      kick()
    }, ms)
    timers.add(timer)
  }

  return {
    kick,
    kickIn,
    isStopped: () => isStopped,
    stop() {
      isStopped = true
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
