import { z } from 'zod'
import { instant } from './instant.ts'

/** A chat that a channel knows, registered or not. */
export const knownChatSchema = z.object({
  jid: z.string(),
  channel: z.string(),
  /** as the platform has it: anybody may have written it */
  name: z.string(),
  isGroup: z.boolean(),
  /** when somebody last said something there; 0: nobody has, as far as is known */
  lastActivity: instant,
})
export type KnownChatRow = z.output<typeof knownChatSchema>

/** Somebody in a chat that nobody has registered asks to be let in. */
export const pairingSchema = z.object({
  jid: z.string(),
  channel: z.string(),
  code: z.string(),
  name: z.string(),
  isGroup: z.boolean(),
  /** who asked, by the platform's own id */
  sender: z.string(),
  senderName: z.string(),
  /**
   * open       waits for an operator
   * approved   a group is registered for the chat
   * denied     whoever writes there is not heard, and cannot ask again
   */
  status: z.enum(['open', 'approved', 'denied']),
  askedAt: instant,
  decidedAt: instant.nullable(),
  decidedBy: z.string().nullable(),
})
export type PairingRow = z.output<typeof pairingSchema>
