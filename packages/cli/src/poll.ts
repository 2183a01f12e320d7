import { setTimeout as sleep } from 'node:timers/promises'

/** Looks again and again until there is something; undefined: not within the time. */
export async function poll<T>(
  find: () => T | undefined | Promise<T | undefined>,
  { everyMs, timeoutMs = Number.POSITIVE_INFINITY }: { everyMs: number; timeoutMs?: number },
): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const found = await find()
    if (found !== undefined) return found
    if (performance.now() >= deadline) return undefined
    await sleep(everyMs)
  }
}

/** Ends early, and without an error, when it is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
