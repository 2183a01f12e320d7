import type { ErrorCode } from '@hatchway/protocol'
import type { Outcome } from './hatch.ts'
import { beginProgress } from './progress.ts'
import type { CallContext, Failure, Session } from './tool.ts'

interface Asking {
  session: Session
  context: CallContext
  /** where the tool has another name for a field of the payload */
  names?: Record<string, string>
  /** how long the host allows itself; left out: as long as for anything */
  hostMs?: number | undefined
}

/** What the host did, or why it did not. */
export type HostAnswer = { id: string; result: Record<string, unknown> } | { failure: Failure }

/** One command to the host on behalf of a client's call: sent, waited for with word of it, and taken back with the call. */
export async function askHost(
  type: string,
  payload: Record<string, unknown>,
  { session, context, names = {}, hostMs }: Asking,
): Promise<HostAnswer> {
  const progress = beginProgress(context, session.progressMs)
  try {
    const { signal } = context.mcpReq
    const outcome = await session.hatch.request(type, payload, { signal, hostMs, progress: progress.report })
    if (outcome.state !== 'answered' || !outcome.receipt.ok) return { failure: failureOf(outcome, names) }
    return { id: outcome.receipt.id, result: outcome.receipt.result }
  } finally {
    progress.end()
  }
}

/** How a code is told that is no refusal of what was asked for. */
const words: Partial<Record<ErrorCode, string>> = {
  expired: 'No answer came in time',
  cancelled: 'This was taken back',
  interrupted: 'The host was stopped while it was at this',
  service_failed: 'The service could not do this',
  answer_too_large: 'The answer is too large to be given',
}

function failureOf(outcome: Outcome, names: Record<string, string>): Failure {
  switch (outcome.state) {
    case 'unsent': {
      const { code } = outcome.error
      const reason = outcome.error.message.replace(
        /^payload\.(\w+)/,
        (_, field: string) => names[field] ?? field,
      )
      return { code, message: `Nothing was sent (${code}): ${reason}` }
    }
    case 'withdrawn':
      return {
        code: 'withdrawn',
        request_id: outcome.id,
        message:
          `This did not happen and will not: ${outcome.reason}, the host had not begun, and request ${outcome.id} ` +
          'was taken back. The host seems not to be running, or is busy; try again later.',
      }
    case 'unknown':
      return {
        code: 'unknown_outcome',
        request_id: outcome.id,
        message:
          `It is unknown whether this happened: the host took request ${outcome.id}, but ${outcome.reason}. ` +
          (outcome.toldToStop ? 'The host was asked to stop it, which may have come too late. ' : '') +
          'Claim neither that it did nor that it did not. Look (for instance with list_tasks) before trying again.',
      }
    case 'answered': {
      if (outcome.receipt.ok) throw new Error('an answer that is no refusal was told as one')
      const { id, error } = outcome.receipt
      return {
        code: error.code,
        request_id: id,
        message: `${words[error.code] ?? 'The host refused this'} (${error.code}): ${error.message}`,
      }
    }
  }
}
