/** One at a time for each name, in the order of asking. */
export interface Turns {
  take<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<void>>()
  return {
    async take(name, signal, work) {
      const before = last.get(name)
      const mine = Promise.withResolvers<void>()
      // Whoever gives up keeps its place until those before are through, so that nobody overtakes them.
      const done = (before ?? Promise.resolve()).then(() => mine.promise)
      last.set(name, done)
      try {
        if (before) await Promise.race([before, aborted(signal)])
        signal.throwIfAborted()
        return await work()
      } finally {
        mine.resolve()
        if (last.get(name) === done) done.then(() => last.get(name) === done && last.delete(name))
      }
    },
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
