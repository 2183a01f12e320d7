import type { Outcome } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { refused } from '../base/outcome.ts'
import { ServiceRefusal } from './define.ts'

const deepest = 200

/** What a handler returned as the answer to its request: an object that JSON can say, within the size that is allowed. */
export function outcomeOfAnswer(answer: unknown, limitBytes: number): Outcome {
  if (!isRecord(answer)) return noObject
  // Looked through before it is written: writing a hundred megabytes would hold everybody up.
  const size = roughSize(answer, limitBytes)
  if (size === 'too deep') return failed('The service’s answer is nested too deeply to be passed on.')
  if (size > limitBytes) return tooLarge(limitBytes)
  let text: string | undefined
  try {
    text = JSON.stringify(answer)
  } catch {
    return failed('The service’s answer cannot be written as JSON.')
  }
  if (text === undefined) return failed('The service’s answer cannot be written as JSON.')
  if (Buffer.byteLength(text) > limitBytes) return tooLarge(limitBytes)
  // Read back: what is stored, sent and shown is the same, whatever the handler does with its object later.
  const result: unknown = JSON.parse(text)
  return isRecord(result) ? { ok: true, result } : noObject
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const tooLarge = (limitBytes: number): Outcome =>
  refused(
    'answer_too_large',
    `The service’s answer is larger than ${limitBytes.toLocaleString('en')} bytes. Ask for less of it.`,
  )

const failed = (message: string): Outcome => refused('service_failed', message)

const noObject = failed('The service gave no answer that can be passed on: an object was expected.')

const longestReason = 2000

/** What a handler threw: its own refusal, or a failure of which its message tells. */
export function outcomeOfFailure(error: unknown): Outcome {
  if (error instanceof ServiceRefusal) return refused(error.code, shortened(error.message))
  const message = reasonOf(error)
  return failed(message === '' ? 'The service failed without a word.' : shortened(message))
}

const shortened = (text: string): string =>
  (text.length > longestReason ? `${text.slice(0, longestReason)}…` : text).toWellFormed()

/** At least this many bytes, counted no further than it takes to know that they are too many. */
export function roughSize(answer: object, limit: number): number | 'too deep' {
  let size = 0
  let level: unknown[] = [answer]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return 'too deep'
    const next: unknown[] = []
    for (const value of level) {
      size += typeof value === 'string' ? value.length + 2 : 1
      if (size > limit) return size
      if (typeof value !== 'object' || value === null) continue
      for (const key in value) {
        if (!Array.isArray(value)) size += key.length + 3
        next.push(Reflect.get(value, key))
        if (size + next.length > limit) return size + next.length
      }
    }
    level = next
  }
  return size
}
