import { Worker } from 'node:worker_threads'
import type { MemoryAnswer, MemoryBatch, MemoryOwner, MemoryRequest, MemoryThreadOptions } from './types.ts'

/**
 * The way to the thread that has the memories. The thread is
 *
 * - absent, until somebody asks;
 * - at work on one batch of one group at a time, while the others wait for their turn;
 * - idle, until the next request, or until it has been for `idleMs`: then it is told to end, and is absent again.
 *
 * A thread that ends by itself is started anew, and what it was at is asked once more: every request may be repeated.
 * What ends a thread a second time is answered with an error.
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

interface Asked {
  owner: MemoryOwner
  request: MemoryRequest
  attempts: number
  settle(answer: MemoryAnswer): void
}

export function openMemoryThread(settings: MemoryThreadSettings): MemoryThread {
  const { idleMs, failed, directory, durability, limits } = settings
  const options: MemoryThreadOptions = { directory, durability, limits }
  /** who waits, by group; the first of them is next */
  const waiting = new Map<string, Asked[]>()
  let atWork: readonly Asked[] = []
  let thread: Worker | undefined
  /** a thread that was told to end; the next one begins after it, as both would have the same files open */
  let ending: Promise<void> | undefined
  let idle: NodeJS.Timeout | undefined
  let closed = false

  const start = () => {
    const started = new Worker(new URL('./thread.ts', import.meta.url), { workerData: options })
    let reason = 'it was ended'
    started.on('message', (answers: readonly MemoryAnswer[]) => {
      const done = atWork
      atWork = []
      for (const [index, asked] of done.entries()) {
        const answer = answers[index]
        if (answer) asked.settle(answer)
      }
      next()
    })
    started.on('error', error => {
      reason = error.message
    })
    started.on('exit', () => {
      if (thread !== started) return
      thread = undefined
      failed(`The thread of the memories has ended (${reason}); it is started anew when it is needed.`)
      const left = atWork
      atWork = []
      askAgain(left)
      next()
    })
    return started
  }

  const askAgain = (left: readonly Asked[]) => {
    const again = left.filter(asked => asked.attempts < attemptsLimit)
    const first = again[0]
    if (first) {
      const { folder } = first.owner
      waiting.set(folder, [...again, ...(waiting.get(folder) ?? [])])
    }
    for (const asked of left) {
      if (again.includes(asked)) continue
      asked.settle({
        ok: false,
        message:
          'The memories could not be reached: their thread ended while it was at work on this, twice. The operator finds the reason in the log.',
      })
    }
  }

  const next = () => {
    if (atWork.length > 0 || ending) return
    const turn = waiting.entries().next().value
    if (turn === undefined) return rest()
    clearTimeout(idle)
    const [folder, lane] = turn
    waiting.delete(folder)
    // A batch is one owner's: the same folder can have been registered anew meanwhile.
    const jid = lane[0]?.owner.jid
    const end = lane.findIndex(asked => asked.owner.jid !== jid)
    // Whatever ended the thread is asked alone, so that it takes nobody else with it.
    const size = lane[0]?.attempts === 0 ? batchSize : 1
    atWork = lane.splice(0, Math.min(size, end === -1 ? lane.length : end))
    if (lane.length > 0) waiting.set(folder, lane)
    for (const asked of atWork) asked.attempts++
    thread ??= start()
    thread.ref()
    const owner = atWork[0]?.owner
    if (owner) send(thread, { owner, requests: atWork.map(({ request }) => request) })
  }

  const rest = () => {
    if (closed || !thread) return
    thread.unref()
    clearTimeout(idle)
    idle = setTimeout(() => void end(), idleMs).unref()
  }

  const end = async () => {
    const leaving = thread
    if (!leaving) return
    thread = undefined
    ending = new Promise<void>(resolve => leaving.once('exit', () => resolve()))
    leaving.ref()
    send(leaving, undefined)
    await ending
    ending = undefined
    for (const asked of atWork) asked.settle(closedAnswer)
    atWork = []
    next()
  }

  return {
    ask(owner, request, signal) {
      return new Promise((resolve, reject) => {
        if (closed) return resolve(closedAnswer)
        if (signal.aborted) return reject(signal.reason)
        const asked: Asked = {
          owner,
          request,
          attempts: 0,
          settle(answer) {
            signal.removeEventListener('abort', withdraw)
            resolve(answer)
          },
        }
        const withdraw = () => {
          const lane = waiting.get(owner.folder)?.filter(other => other !== asked) ?? []
          if (lane.length > 0) waiting.set(owner.folder, lane)
          else waiting.delete(owner.folder)
          reject(signal.reason)
        }
        signal.addEventListener('abort', withdraw, { once: true })
        const lane = waiting.get(owner.folder)
        if (lane) lane.push(asked)
        else waiting.set(owner.folder, [asked])
        next()
      })
    },
    async close() {
      closed = true
      clearTimeout(idle)
      for (const lane of waiting.values()) for (const asked of lane) asked.settle(closedAnswer)
      waiting.clear()
      await end()
      await ending
    },
  }
}

const send = (thread: Worker, batch: MemoryBatch) => thread.postMessage(batch)
