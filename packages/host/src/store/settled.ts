import type { MessageRow } from './types.ts'

/** What an attempt to deliver a message has come to. */
export type Change = Pick<
  MessageRow,
  'id' | 'status' | 'attempts' | 'nextAttemptAt' | 'partsSent' | 'partsTotal' | 'error' | 'sentAt'
>

export interface Settled {
  message: MessageRow
  change: Change
}
