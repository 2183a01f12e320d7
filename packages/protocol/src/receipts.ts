import { z } from 'zod'
import { errorCodeSchema } from './errors.ts'
import { requestIdSchema } from './identifiers.ts'

/** The answer to a command: done with a result, or refused with a code and a reason (promise 5). */
export const resultSchema = z.record(z.string(), z.unknown())
export const refusalSchema = z.object({ code: errorCodeSchema, message: z.string() })

export const outcomeSchema = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), result: resultSchema }),
  z.object({ ok: z.literal(false), error: refusalSchema }),
])
export type Outcome = z.infer<typeof outcomeSchema>

const envelope = { version: z.literal(1), id: requestIdSchema }
export const receiptSchema = z.discriminatedUnion('ok', [
  z.object({ ...envelope, ok: z.literal(true), result: resultSchema }),
  z.object({ ...envelope, ok: z.literal(false), error: refusalSchema }),
])
export type Receipt = z.infer<typeof receiptSchema>
