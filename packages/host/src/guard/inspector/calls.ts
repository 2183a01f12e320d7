import { createHash } from 'node:crypto'
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
  limits?: Partial<typeof usualLimits>
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

const usualLimits = { atOnce: 4, perGroup: 2, waitingPerGroup: 32, remembered: 1000 }

export function createCalls({ timeoutMs, cacheMs, now, ...options }: CallsOptions): Calls {
  const limits = { ...usualLimits, ...options.limits }
  /** the oldest is the first */
  const remembered = new Map<string, { verdict: Verdict; until: number }>()
  const underWay = new Map<string, UnderWay>()
  const running: string[] = []
  let waiting: { group: string; begin(): void }[] = []

  const beginMore = () => {
    while (running.length < limits.atOnce) {
      const next = waiting.find(({ group }) => countOf(running, group) < limits.perGroup)
      if (!next) return
      waiting = waiting.filter(other => other !== next)
      running.push(next.group)
      next.begin()
    }
  }

  const turn = (group: string, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        waiting = waiting.filter(other => other !== one)
        reject(signal.reason)
      }
      const one = {
        group,
        begin() {
          signal.removeEventListener('abort', leave)
          resolve()
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      waiting.push(one)
      beginMore()
    })

  const inTurn = async (asked: Asked, signal: AbortSignal): Promise<Verdict> => {
    await turn(asked.group, signal)
    try {
      return await asked.call(signal)
    } finally {
      running.splice(running.indexOf(asked.group), 1)
      beginMore()
    }
  }

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
    const answer = inTurn(asked, controller.signal)
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
        underWay.delete(key)
        controller.abort(nobodyListens)
      },
    }
    underWay.set(key, call)
    return call
  }

  return {
    ask(asked, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const key = digestOf(asked.content)
        const known = remembered.get(key)
        if (known && known.until > now()) return resolve(known.verdict)
        let call = underWay.get(key)
        if (!call && countOf(waiting, asked.group) >= limits.waitingPerGroup)
          return resolve(unsure('Too many questions of this group wait for the model.', asked.by))
        call ??= begin(key, asked)
        const listenedTo = call
        const leave = () => {
          if (--listenedTo.listeners === 0) listenedTo.hangUp()
          reject(signal.reason)
        }
        listenedTo.listeners++
        signal.addEventListener('abort', leave, { once: true })
        void listenedTo.answer.then(verdict => {
          signal.removeEventListener('abort', leave)
          resolve(verdict)
        })
      })
    },
  }
}

const tooLate = new Error('The model did not answer in time.')
const nobodyListens = new Error('Nobody waits for the answer any longer.')

const unsure = (reason: string, by: string): Verdict => ({ verdict: 'unsure', reason, by })

const countOf = (list: readonly (string | { group: string })[], group: string): number =>
  list.filter(item => (typeof item === 'string' ? item : item.group) === group).length

const digestOf = (content: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('base64url')
