import type { Outcome } from '@hatchway/protocol'
import type { CommandRow } from '../store/types.ts'

/** One handled command, as `hatchway tail` and the console see it the moment it is durable. */
export interface CommandEvent {
  seq: number
  group: string
  file: string
  dialect: CommandRow['dialect']
  type: string | null
  requestId: string | null
  /** null: accepted, and the answer follows */
  outcome: Outcome | null
  receivedAt: number
  tookUs: number
  /** how long the file lay there before it was claimed, by its own clock */
  waitedMs: number
  /** the request id was answered before: the first answer was given again */
  repeated: boolean
}
