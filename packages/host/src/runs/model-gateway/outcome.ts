import type { ModelProblem } from './health.ts'

/** Names that agents choose are repeated only if they look like names. */
const unknownModel = /"message" ?: ?"(?:model: ?|[^"]{0,40}?model [`'])([A-Za-z0-9][\w.:@/-]{0,99})["`']/
const errorBytes = 4096
/** In fields of their own: APIs repeat what an agent has sent in their messages, where its quotes are escaped. */
const invalidKey = /"reason"\s*:\s*"API_KEY_INVALID"/
const noCredit = /"(code|type)"\s*:\s*"insufficient_quota"|"message"\s*:\s*"Your credit balance/

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
      if (status === 401 || (status === 400 && invalidKey.test(text))) return { cause: 'key_refused' }
      if (status === 402 || noCredit.test(text)) return { cause: 'no_credit' }
      if (status === 429) return { cause: 'rate_limited' }
      if (status >= 500) return { cause: 'failing', code: String(status) }
      if (status !== 404 || !isTurn) return undefined
      const model = unknownModel.exec(text)?.[1]
      if (!/model/.test(text)) return { cause: 'unreachable' }
      return model === undefined ? { cause: 'model_unknown' } : { cause: 'model_unknown', model }
    },
  }
}

/** What one run has seen of the model API so far. */
export interface ApiTrack {
  note(problem: ModelProblem | undefined): void
  isKeyRefused(): boolean
}

export function trackApi(onOutcome: ((problem: ModelProblem | undefined) => void) | undefined): ApiTrack {
  let isKeyRefused = false
  return {
    note(problem) {
      if (problem?.cause === 'key_refused') isKeyRefused = true
      onOutcome?.(problem)
    },
    isKeyRefused: () => isKeyRefused,
  }
}
