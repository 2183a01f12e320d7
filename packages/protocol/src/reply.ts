import type { OutgoingFile, ReplyAddress } from './dialect.ts'
import type { Outcome, Receipt } from './receipts.ts'

const receipt = (id: string, outcome: Outcome): Receipt =>
  outcome.ok
    ? { version: 1, id, ok: true, result: outcome.result }
    : { version: 1, id, ok: false, error: { code: outcome.error.code, message: outcome.error.message } }

const reason = ({ code, message }: { code: string; message: string }): string => `${code}: ${message}`

const result = (outcome: Outcome) =>
  outcome.ok ? { result: outcome.result } : { error: reason(outcome.error) }

/** Closed by default: only the word allow, in a decision that was reached, allows. */
const decide = (outcome: Outcome): { decision: 'allow' | 'deny'; reason?: string } => {
  if (!outcome.ok) return { decision: 'deny', reason: reason(outcome.error) }
  if (outcome.result.decision === 'allow') return { decision: 'allow' }
  const given = outcome.result.reason
  return typeof given === 'string' ? { decision: 'deny', reason: given } : { decision: 'deny' }
}

/**
 * Pynchy's container reads only `result` of any answer, its document names the fields at the top. Its shell gate takes
 * an answer without a decision, or one with `error`, for a yes.
 */
const decision = (outcome: Outcome) => {
  const decided = decide(outcome)
  return { ...decided, result: decided }
}

/** merge_results/ knows no `data`; what there is to say besides the message goes into x_results/ only. */
const success = (address: ReplyAddress, outcome: Outcome) => {
  if (!outcome.ok) return { success: false, message: reason(outcome.error) }
  const { message, ...data } = outcome.result
  const told = { success: true, message: typeof message === 'string' ? message : 'done' }
  return address.directory === 'x_results' && Object.keys(data).length > 0 ? { ...told, data } : told
}

const rendered = (address: ReplyAddress, outcome: Outcome): unknown => {
  switch (address.shape) {
    case 'receipt':
      return receipt(address.id, outcome)
    case 'result':
      return result(outcome)
    case 'decision':
      return decision(outcome)
    case 'success':
      return success(address, outcome)
  }
}

/** The file that answers a request, in the shape its writer waits for (promise 5). */
export const renderReply = (address: ReplyAddress, outcome: Outcome): OutgoingFile => ({
  path: `${address.directory}/${address.id}.json`,
  content: JSON.stringify(rendered(address, outcome)),
})
