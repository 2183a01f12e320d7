import { dialectNameSchema, outcomeSchema, replyAddressSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { instant } from './instant.ts'

/** One handled file: the journal that makes "executed once" true (promise 3) and the history people look at. */
export const commandSchema = z.object({
  /** the claim's number; the claimed file's name begins with it */
  seq: z.int(),
  group: z.string(),
  directory: z.string(),
  file: z.string(),
  dialect: dialectNameSchema.nullable(),
  /** as the file named it */
  type: z.string().nullable(),
  requestId: z.string().nullable(),
  outcome: outcomeSchema.nullable().describe('null: accepted, and the answer follows'),
  receivedAt: instant,
  tookUs: z.number(),
  inode: z.number(),
  mtimeUs: z.number(),
  reply: replyAddressSchema.nullable(),
})
export type CommandRow = z.output<typeof commandSchema>

/** One handled command, as `hatchway tail` and the console see it the moment it is durable. */
export const commandEventSchema = commandSchema
  .omit({ directory: true, inode: true, mtimeUs: true, reply: true })
  .extend({
    /** how long the file lay there before it was claimed, by its own clock */
    waitedMs: z.number(),
    /** the request id was answered before: the first answer was given again */
    repeated: z.boolean(),
  })
export type CommandEvent = z.output<typeof commandEventSchema>
