import type { Outcome } from '@hatchway/protocol'
import type { Effect } from '../commands/effects.ts'
import type { Held } from '../guard/guard.ts'
import type { RequestRow } from '../store/types.ts'

/** What parts of the host tell each other without knowing each other: effects of commands, and these. */
export type Notice =
  | Effect
  /** other services, or other tools of theirs, than before */
  | { kind: 'services_changed' }
  /** somebody has to look at it before it happens; the signal says that this is over */
  | { kind: 'command_held'; request: RequestRow; signal: AbortSignal }
  /** a person has to decide about a held command */
  | {
      kind: 'approval_needed'
      request: RequestRow
      held: Held
      why: string
      /** what was said once does not count for the next time */
      hasSecrets: boolean | undefined
    }
  /** the answer of a request is durable */
  | { kind: 'request_answered'; request: RequestRow; outcome: Outcome }
  /** a group's agent is to know this when it runs next */
  | { kind: 'agent_told'; folder: string; about: string; text: string }
