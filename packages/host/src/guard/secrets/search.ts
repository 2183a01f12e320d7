import { Worker } from 'node:worker_threads'

/**
 * Secrets in what goes out. They are looked for in a thread of its own, because a large payload takes longer than
 * anybody should wait, and one that was made for it takes a pattern for ever. The thread is
 *
 * - absent, until somebody asks, so that a quiet daemon has none of it in memory;
 * - at work on one payload, while the others wait and groups take turns;
 * - idle, until the next one, or until it has been for `idleMs`: then it is ended, and is absent again.
 *
 * Closed by default (promise 9): a payload that could not be searched in time, or at all, is answered as if something
 * had been found. What is found is never part of the answer.
 */
export interface FoundSecret {
  kind: string
  /** the field it is in, such as `payload.headers[2].value` */
  where: string
}

export interface SecretSearch {
  /** rejects with the signal's reason, and for nothing else */
  findSecrets(
    payload: unknown,
    options?: { group?: string; signal?: AbortSignal },
  ): Promise<readonly FoundSecret[]>
  close(): Promise<void>
}

export interface SecretSearchOptions {
  /** how long one payload may take */
  patienceMs?: number
  startMs?: number
  idleMs?: number
  memoryMb?: number
}

interface Asked {
  payload: unknown
  settle(found: readonly FoundSecret[]): void
}

/** characters as JSON; more is not searched */
const longestPayload = 4_194_304
/** secretlint keeps notes about every text it has seen for as long as it lives */
const searchesOfOneThread = 500

const unsearched = (kind: string): readonly FoundSecret[] => [{ kind, where: 'payload' }]

export function createSecretSearch(options: SecretSearchOptions = {}): SecretSearch {
  const { patienceMs = 5000, startMs = 30_000, idleMs = 30_000, memoryMb = 256 } = options
  /** who waits, by group; the first of them is next */
  const waiting = new Map<string, Asked[]>()
  let atWork: Asked | undefined
  let thread: Worker | undefined
  let isReady = false
  let searches = 0
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const start = () => {
    const started = new Worker(new URL('./thread.ts', import.meta.url), {
      // It has nothing to look for in the host's environment.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    })
    isReady = false
    searches = 0
    started.on('message', (message: 'ready' | readonly FoundSecret[]) => {
      if (thread !== started) return
      if (message !== 'ready') return settle(message)
      isReady = true
      if (atWork) wait(patienceMs, 'too_slow_to_search')
    })
    // It was asked too much of, or cannot start; without a listener the daemon would end with it.
    started.on('error', () => {})
    started.on('exit', () => {
      if (thread !== started) return
      thread = undefined
      settle(unsearched('search_failed'))
    })
    return started
  }

  /** What is not answered by then ends with the thread. */
  const wait = (ms: number, kind: string) => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      void end()
      settle(unsearched(kind))
    }, ms)
  }

  const settle = (found: readonly FoundSecret[]) => {
    clearTimeout(timer)
    const done = atWork
    atWork = undefined
    done?.settle(found)
    next()
  }

  const next = () => {
    if (atWork || closed) return
    const turn = waiting.entries().next().value
    if (turn === undefined) return rest()
    const [group, lane] = turn
    waiting.delete(group)
    const [first, ...others] = lane
    if (others.length > 0) waiting.set(group, others)
    if (!first) return next()
    const payload = asJson(first.payload)
    if (typeof payload !== 'string') {
      first.settle(payload)
      return next()
    }
    atWork = first
    if (searches++ >= searchesOfOneThread) void end()
    thread ??= start()
    thread.ref()
    thread.postMessage(payload)
    if (isReady) wait(patienceMs, 'too_slow_to_search')
    else wait(startMs, 'search_failed')
  }

  const rest = () => {
    if (!thread) return
    thread.unref()
    clearTimeout(timer)
    timer = setTimeout(() => void end(), idleMs).unref()
  }

  const end = async () => {
    const leaving = thread
    thread = undefined
    await leaving?.terminate()
  }

  const withdraw = (group: string, asked: Asked) => {
    const lane = waiting.get(group)?.filter(other => other !== asked) ?? []
    if (lane.length > 0) waiting.set(group, lane)
    else waiting.delete(group)
  }

  return {
    findSecrets(payload, { group = '', signal } = {}) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        if (closed) return resolve(unsearched('search_failed'))
        const abort = () => {
          withdraw(group, asked)
          reject(signal?.reason)
        }
        const asked: Asked = {
          payload,
          settle(found) {
            signal?.removeEventListener('abort', abort)
            resolve(found)
          },
        }
        signal?.addEventListener('abort', abort, { once: true })
        const lane = waiting.get(group)
        if (lane) lane.push(asked)
        else waiting.set(group, [asked])
        next()
      })
    },
    async close() {
      closed = true
      clearTimeout(timer)
      const left = [...(atWork ? [atWork] : []), ...[...waiting.values()].flat()]
      waiting.clear()
      atWork = undefined
      for (const asked of left) asked.settle(unsearched('search_failed'))
      await end()
    },
  }
}

/** As it would go out: what JSON leaves away cannot get out either. */
function asJson(payload: unknown): string | readonly FoundSecret[] {
  try {
    const text = JSON.stringify(payload) ?? 'null'
    return text.length > longestPayload ? unsearched('too_large_to_search') : text
  } catch {
    return unsearched('unreadable')
  }
}
