/** Timers that do nothing once the spool has stopped. */
export interface Timers {
  later(ms: number, work: () => void): NodeJS.Timeout
  cancel(timer: NodeJS.Timeout | undefined): void
  cancelAll(): void
}

export function createTimers(isStopped: () => boolean): Timers {
  const timers = new Set<NodeJS.Timeout>()
  return {
    later(ms, work) {
      const timer = setTimeout(() => {
        timers.delete(timer)
        if (!isStopped()) work()
      }, ms)
      timers.add(timer)
      return timer
    },
    cancel(timer) {
      if (!timer) return
      clearTimeout(timer)
      timers.delete(timer)
    },
    cancelAll() {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
