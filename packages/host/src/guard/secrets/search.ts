import { createWorkQueue } from '../../base/keyed-queue.ts'
import { abortable } from '../../base/pause.ts'
import { createThread, ThreadFailed } from '../../base/thread.ts'

/**
 * Secrets in what goes out. They are looked for in a thread of its own, because a large payload takes longer than
 * anybody should wait, and one that was made for it takes a pattern for ever. It searches one payload at a time, groups
 * take turns, and a quiet daemon has none of it in memory.
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
  idleMs?: number
  memoryMb?: number
}

/** characters as JSON; more is not searched */
const longestPayload = 4_194_304
/** secretlint keeps notes about every text it has seen for as long as it lives */
const searchesOfOneThread = 500

const unsearched = (kind: string): readonly FoundSecret[] => [{ kind, where: 'payload' }]

export function createSecretSearch(options: SecretSearchOptions = {}): SecretSearch {
  const { patienceMs = 5000, idleMs = 30_000, memoryMb = 256 } = options
  const queue = createWorkQueue({ all: 1 })
  const thread = createThread<string, readonly FoundSecret[]>({
    file: new URL('./thread.ts', import.meta.url),
    limitMs: patienceMs,
    questions: searchesOfOneThread,
    ...{ startMs: 30_000, idleMs, memoryMb },
  })

  const search = async (payload: unknown): Promise<readonly FoundSecret[]> => {
    const text = asJson(payload)
    if (typeof text !== 'string') return text
    try {
      return await thread.ask(text)
    } catch (error) {
      const isSlow = error instanceof ThreadFailed && error.why === 'too_slow'
      return unsearched(isSlow ? 'too_slow_to_search' : 'search_failed')
    }
  }

  return {
    findSecrets(payload, { group = '', signal } = {}) {
      // Where nobody waits any longer the thread finishes all the same: it is in nobody's way.
      const searching = queue.run(group, signal, () => search(payload))
      return signal ? abortable(searching, signal) : searching
    },
    async close() {
      await thread.close()
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
