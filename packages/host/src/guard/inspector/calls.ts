import { createHash } from 'node:crypto'
import { createWorkQueue } from '../../base/keyed-queue.ts'
import { abortable } from '../../base/pause.ts'
import type { Verdict } from '../../base/taint.ts'

/**
 * Questions to a model, none asked twice. A question is
 *
 * - remembered: it had a clear verdict, not too long ago, which is given again;
 * - under way: whoever asks the same meanwhile gets the same answer. When the last of them has gone, it is hung up;
 * - waiting for its turn: so many are asked at once, of one group fewer, so that no group has all of them;
 * - refused where too many of its group wait already, and out of time where it took too long, waiting included. Both
 *   are unsure.
 */
export interface CallsOptions {
  timeoutMs: number
  cacheMs: number
  now(): number
}

export interface Calls {
  ask(question: Asked, signal: AbortSignal): Promise<Verdict>
}

interface Asked {
  /** everything that can change the answer */
  content: readonly string[]
  group: string
  /** for answers that come from here */
  by: string
  /** rejects only when it is hung up */
  call(signal: AbortSignal): Promise<Verdict>
}

interface UnderWay {
  answer: Promise<Verdict>
  listeners: number
  hangUp(): void
}

const limits = { atOnce: 4, perGroup: 2, waitingPerGroup: 32, remembered: 1000 }

export function createCalls({ timeoutMs, cacheMs, now }: CallsOptions): Calls {
  /** the oldest is the first */
  const remembered = new Map<string, { verdict: Verdict; until: number }>()
  const underWay = new Map<string, UnderWay>()
  const queue = createWorkQueue({ perKey: limits.perGroup, all: limits.atOnce })

  const remember = (key: string, verdict: Verdict) => {
    if (verdict.verdict === 'unsure' || cacheMs === 0) return
    remembered.delete(key)
    remembered.set(key, { verdict, until: now() + cacheMs })
    const oldest = remembered.keys().next().value
    if (remembered.size > limits.remembered && oldest !== undefined) remembered.delete(oldest)
  }

  const begin = (key: string, asked: Asked): UnderWay => {
    const controller = new AbortController()
    const late = setTimeout(() => controller.abort(tooLate), timeoutMs)
    const answer = queue
      .run(asked.group, controller.signal, () => asked.call(controller.signal))
      .catch((): Verdict => unsure('The model did not answer in time.', asked.by))
      .then(verdict => {
        remember(key, verdict)
        return verdict
      })
      .finally(() => {
        clearTimeout(late)
        if (underWay.get(key) === call) underWay.delete(key)
      })
    const call: UnderWay = {
      answer,
      listeners: 0,
      hangUp() {
        if (underWay.get(key) === call) underWay.delete(key)
        controller.abort(nobodyListens)
      },
    }
    underWay.set(key, call)
    return call
  }

  return {
    async ask(asked, signal) {
      signal.throwIfAborted()
      const key = digestOf(asked.content)
      const known = remembered.get(key)
      if (known && known.until > now()) return known.verdict
      let call = underWay.get(key)
      if (!call && queue.waiting(asked.group) >= limits.waitingPerGroup)
        return unsure('Too many questions of this group wait for the model.', asked.by)
      call ??= begin(key, asked)
      call.listeners++
      try {
        return await abortable(call.answer, signal)
      } finally {
        if (--call.listeners === 0 && signal.aborted) call.hangUp()
      }
    },
  }
}

const tooLate = new Error('The model did not answer in time.')
const nobodyListens = new Error('Nobody waits for the answer any longer.')

const unsure = (reason: string, by: string): Verdict => ({ verdict: 'unsure', reason, by })

const digestOf = (content: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('base64url')
