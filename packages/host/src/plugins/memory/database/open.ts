import { createKeyedQueue } from '../../../base/keyed-queue.ts'
import { createThread } from '../../../base/thread.ts'
import type { MemoryAnswer, MemoryBatch, MemoryOwner, MemoryRequest, MemoryThreadOptions } from './types.ts'

/**
 * The way to the thread that has the memories. It works on one batch of one group at a time, and groups take turns. What
 * it was at when it ended by itself is asked once more: every request may be repeated. What ends a thread a second time
 * is answered with an error.
 */
export interface MemoryThread {
  ask(owner: MemoryOwner, request: MemoryRequest, signal: AbortSignal): Promise<MemoryAnswer>
  close(): Promise<void>
}

export interface MemoryThreadSettings extends MemoryThreadOptions {
  idleMs: number
  failed(message: string): void
}

/** Requests of a group that share one commit. More would be quicker for it, and slower for the next group. */
const batchSize = 16
const attemptsLimit = 2

const closedAnswer: MemoryAnswer = { ok: false, message: 'The memories are closed.' }
const lostAnswer: MemoryAnswer = {
  ok: false,
  message:
    'The memories could not be reached: their thread ended while it was at work on this, twice. The operator finds the reason in the log.',
}

interface Asked {
  owner: MemoryOwner
  request: MemoryRequest
  attempts: number
  settle(answer: MemoryAnswer): void
}

export function openMemoryThread(settings: MemoryThreadSettings): MemoryThread {
  const { idleMs, failed, ...workerData } = settings
  const queue = createKeyedQueue<Asked>({ all: 1 })
  const thread = createThread<MemoryBatch, readonly MemoryAnswer[]>({
    file: new URL('./thread.ts', import.meta.url),
    endsPolitely: true,
    ...{ workerData, idleMs },
  })
  let isClosed = false

  const beginMore = () => {
    const turn = queue.next()
    if (turn) void carryOut(turn.key, turn.item)
  }

  const carryOut = async (folder: string, first: Asked) => {
    const { owner } = first
    let room = batchSize - 1
    const others = queue.more(
      folder,
      // A batch is one owner's: the same folder can have been registered anew meanwhile. Whatever ended the thread is
      // asked alone, so that it takes nobody else with it.
      asked => asked.owner.jid === owner.jid && first.attempts + asked.attempts === 0 && room-- > 0,
    )
    const batch = [first, ...others]
    for (const asked of batch) asked.attempts++
    try {
      const answers = await thread.ask({ owner, requests: batch.map(({ request }) => request) })
      for (const [index, asked] of batch.entries()) asked.settle(answers[index] ?? lostAnswer)
    } catch (error) {
      if (!isClosed) failed(endOf(error))
      for (const asked of batch.toReversed()) {
        if (isClosed) asked.settle(closedAnswer)
        else if (asked.attempts < attemptsLimit) queue.putBack(folder, asked)
        else asked.settle(lostAnswer)
      }
    }
    queue.done(folder)
    beginMore()
  }

  return {
    ask({ folder, jid }, request, signal) {
      return new Promise((resolve, reject) => {
        if (isClosed) return resolve(closedAnswer)
        if (signal.aborted) return reject(signal.reason)
        const withdraw = () => {
          queue.remove(folder, asked)
          reject(signal.reason)
        }
        const asked: Asked = {
          ...{ owner: { folder, jid }, request, attempts: 0 },
          settle(answer) {
            signal.removeEventListener('abort', withdraw)
            resolve(answer)
          },
        }
        signal.addEventListener('abort', withdraw, { once: true })
        queue.add(folder, asked)
        beginMore()
      })
    },
    async close() {
      isClosed = true
      for (const asked of queue.clear()) asked.settle(closedAnswer)
      await thread.close()
    },
  }
}

const endOf = (error: unknown): string => {
  const reason = error instanceof Error ? error.message : String(error)
  return `The thread of the memories has ended (${reason}); it is started anew when it is needed.`
}
