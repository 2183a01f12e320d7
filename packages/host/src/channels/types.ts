import type { MessageRow } from '../store/types.ts'

/** A way to people. `send` resolves when the message is delivered and rejects when it has to be tried again. */
export interface Channel {
  name: string
  /** whether the chat is one of this channel's */
  reaches(jid: string): boolean
  send(message: MessageRow): Promise<void>
}
