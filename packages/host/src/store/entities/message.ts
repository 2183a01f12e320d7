import { z } from 'zod'
import { attachmentsSchema } from './file.ts'
import { instant } from './instant.ts'

/** The outbox: what agents, the operator and the host said, until a channel has delivered it (promise 4). */
export const messageSchema = z.object({
  id: z.int(),
  group: z.string(),
  jid: z.string(),
  /**
   * whose words they are; what the `host` itself says is neither quoted to agents nor told to them as said by them, because
   * a stranger's name may be in it
   */
  author: z.enum(['agent', 'operator', 'host']),
  /**
   * an `edit` changes what an earlier message says: `messageId` is that message's id here; a `progress` shows that an agent
   * is at work, until another message `replaces` it
   */
  kind: z.enum(['text', 'reaction', 'question', 'approval', 'edit', 'progress']),
  text: z.string(),
  sender: z.string().nullable(),
  status: z.enum(['pending', 'sent', 'failed']),
  createdAt: instant,
  sentAt: instant.nullable(),
  attempts: z.int(),
  error: z.string().nullable(),
  messageId: z.string().nullable(),
  speech: z.object({ text: z.string(), title: z.string().optional() }).nullable(),
  attachments: attachmentsSchema,
  nextAttemptAt: instant,
  /** of a message that goes out in several parts: those that were delivered before the last attempt broke off */
  partsSent: z.int(),
  partsTotal: z.int(),
  /** the thread or topic it is said in; left out: none */
  thread: z.string().optional(),
  /** the platform's id of the message it answers */
  replyTo: z.string().optional(),
  /** the platform's ids of what was delivered, one for each part */
  externalIds: z.array(z.string()).readonly().optional(),
  /** the message that it takes the place of, on platforms that can change messages */
  replaces: z.int().optional(),
})
export type MessageRow = z.output<typeof messageSchema>
export const newMessageSchema = messageSchema.pick({
  id: true,
  group: true,
  jid: true,
  author: true,
  kind: true,
  text: true,
  sender: true,
  createdAt: true,
  messageId: true,
  speech: true,
  attachments: true,
  thread: true,
  replyTo: true,
  replaces: true,
})
export type NewMessage = z.output<typeof newMessageSchema>

/** What an attempt to deliver a message has come to. */
export type Change = Pick<
  MessageRow,
  'id' | 'status' | 'attempts' | 'nextAttemptAt' | 'partsSent' | 'partsTotal' | 'error' | 'sentAt'
> &
  Partial<Pick<MessageRow, 'externalIds'>>
export interface Settled {
  message: MessageRow
  change: Change
}

/** The message that somebody answers. */
const quoteSchema = z.object({
  /** the platform's */
  id: z.string(),
  senderName: z.string().optional(),
  text: z.string().optional(),
})
export type Quote = z.output<typeof quoteSchema>

/** What people said. */
export const incomingSchema = z.object({
  id: z.int(),
  group: z.string(),
  jid: z.string(),
  channel: z.string(),
  externalId: z.string().nullable(),
  sender: z.string(),
  senderName: z.string(),
  text: z.string(),
  attachments: attachmentsSchema,
  /**
   * waiting   stored, no run has it yet
   * given     a run has it and has not said that it used it; goes back to waiting when that run ends
   * used      a run used it, or it answered a question
   * context   said without calling the agent; goes along with the next one that does
   */
  status: z.enum(['waiting', 'given', 'used', 'context']),
  /** the run that was given it last, whether it has used it or not */
  runId: z.string().nullable(),
  createdAt: instant,
  /** the thread or topic it was said in; answers go there */
  thread: z.string().optional(),
  quote: quoteSchema.optional(),
})
export type IncomingRow = z.output<typeof incomingSchema>
export type IncomingStatus = IncomingRow['status']
export type NewIncoming = Omit<IncomingRow, 'id' | 'status' | 'runId'> & {
  status: Exclude<IncomingStatus, 'given'>
}
