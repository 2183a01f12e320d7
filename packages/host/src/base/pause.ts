import { setTimeout as sleep } from 'node:timers/promises'

/** Waits so long, or until the signal is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal })
  } catch (error) {
    if (!signal?.aborted) throw error
  }
}

/** Whether it came true in time; a promise that is rejected in time rejects. */
export async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const isOver = new AbortController()
  try {
    return await Promise.race([promise.then(() => true), pause(ms, isOver.signal).then(() => false)])
  } finally {
    isOver.abort()
  }
}

const pollMs = 25

/** Whether the condition came true in time. */
export async function until(ms: number, condition: () => boolean | Promise<boolean>): Promise<boolean> {
  const end = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > end) return false
    await pause(pollMs)
  }
  return true
}

/** The promise, but rejected with the signal's reason as soon as that is aborted. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([aborted.promise, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
