import { errorCodeSchema, outcomeSchema, replyAddressSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { instant } from './instant.ts'

/** A request whose answer follows. */
export const requestSchema = z.object({
  /** the command's number in the journal */
  seq: z.int(),
  group: z.string(),
  /** asked of a service, of people, work of the host's own, or a command that somebody has to look at first */
  kind: z.enum(['service', 'question', 'held', 'work']),
  tool: z.string(),
  createdAt: instant,
  expiresAt: instant,
  input: z.record(z.string(), z.unknown()),
  /** null: nobody waits for it */
  reply: replyAddressSchema.nullable(),
  /**
   * waiting    stored, nobody has begun
   * running    a service that must not be asked twice has begun
   * answered   the answer is durable and has to be placed
   * placed     it lies, or lay, in the group's directory; only kept because it is large
   */
  status: z.enum(['waiting', 'running', 'answered', 'placed']),
  outcome: outcomeSchema.nullable(),
})
export type RequestRow = z.output<typeof requestSchema>
export type NewRequest = Omit<RequestRow, 'status' | 'outcome'>

/** A command that was refused without an answer: the file had no request id. */
export const refusalSchema = z.object({
  /** of the command */
  seq: z.int(),
  group: z.string(),
  /** as the file named it; null: nobody knows */
  type: z.string().nullable(),
  code: errorCodeSchema,
  message: z.string(),
})
export type UntoldRefusal = z.output<typeof refusalSchema>
