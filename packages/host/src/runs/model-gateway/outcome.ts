import type { ModelProblem } from './health.ts'

/** Names that agents choose are repeated only if they look like names. */
const unknownModel = /"message" ?: ?"(?:model: ?|[^"]{0,40}?model `)([A-Za-z0-9][\w.:@/-]{0,99})["`]/
const errorBytes = 4096

/** What an answer says about the model API. Only errors are read, and only their beginning. */
export interface Outcome {
  push(chunk: Buffer): void
  /** once all of it has come */
  problem(): ModelProblem | undefined
}

export function createOutcome(path: string, status: number): Outcome {
  let text = ''
  // Some gateways cannot count, or list; that keeps nobody from being answered.
  const isTurn = !path.includes('count') && !/^\/v1\/models(\/[^:]*)?$/.test(path)
  return {
    push(chunk: Buffer) {
      if (status >= 400 && text.length < errorBytes) text += chunk.toString('latin1')
    },
    problem(): ModelProblem | undefined {
      if (status === 401) return { cause: 'key_refused' }
      if (status === 402 || (status === 400 && /credit balance/.test(text))) return { cause: 'no_credit' }
      if (status === 429) return { cause: 'rate_limited' }
      if (status >= 500) return { cause: 'failing' }
      if (status !== 404 || !isTurn) return undefined
      const model = unknownModel.exec(text)?.[1]
      if (!/model/.test(text)) return { cause: 'unreachable' }
      return model === undefined ? { cause: 'model_unknown' } : { cause: 'model_unknown', model }
    },
  }
}

/** failures in a row after which agents are told to give up */
const mostFailures = 3

/** What one run has seen of the model API so far. */
export interface ApiTrack {
  note(problem: ModelProblem | undefined): void
  isKeyRefused(): boolean
  /** whether it failed so often in a row that trying again is no use */
  isHopeless(): boolean
}

export function trackApi(onOutcome: ((problem: ModelProblem | undefined) => void) | undefined): ApiTrack {
  /** requests in a row that did not reach the API, or at which it failed */
  let failures = 0
  let isKeyRefused = false
  return {
    note(problem) {
      if (problem?.cause === 'key_refused') isKeyRefused = true
      failures = problem?.cause === 'unreachable' || problem?.cause === 'failing' ? failures + 1 : 0
      // One failure of the API's own is nothing yet: the agent tries again.
      if (problem?.cause !== 'failing' || failures >= mostFailures) onOutcome?.(problem)
    },
    isKeyRefused: () => isKeyRefused,
    isHopeless: () => failures >= mostFailures,
  }
}
