import { type ErrorCode, type Outcome, refusal } from '@hatchway/protocol'

export type Refused = Extract<Outcome, { ok: false }>

export const done = (result: Record<string, unknown>): Outcome => ({ ok: true, result })

export const refused = (code: ErrorCode, message: string): Refused => ({
  ok: false,
  error: refusal(code, message),
})
