import { z } from 'zod'
import { instant } from './instant.ts'

/** A file that goes along with a message. */
export const attachmentSchema = z.object({
  /** names the host's own copy */
  id: z.string(),
  /** for people: one line, and no path */
  name: z.string(),
  /** as its content shows */
  type: z.string(),
  bytes: z.int(),
  /** where the agent finds it, as the agent sees it; only of what people sent */
  path: z.string().optional(),
  gone: z.boolean().optional().describe('it is no longer kept'),
})
export type Attachment = z.output<typeof attachmentSchema>
/** left out where nothing goes along, as with nearly all messages */
export const attachmentsSchema = z.array(attachmentSchema).readonly().optional()

/** The host's copy of a file; or a file that is for the group's agent alone, and lies only in its folder. */
export const fileSchema = attachmentSchema.omit({ path: true, gone: true }).extend({
  /** whose message it is, or to whom it is said */
  group: z.string(),
  /** of the chat it is seen in */
  jid: z.string(),
  direction: z.enum(['in', 'out']),
  /** the message it goes along with; null: it was not said yet, or, if it goes out, it is for the agent alone */
  message: z.int().nullable(),
  createdAt: instant,
})
export type FileRow = z.output<typeof fileSchema>
