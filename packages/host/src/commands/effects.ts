import type { Outcome } from '@hatchway/protocol'
import type { RequestRow } from '../store/types.ts'

/** What has to happen on disk once the transaction is durable. Doing one of them twice does no harm. */
export type Effect =
  | { kind: 'group_added'; folder: string }
  | { kind: 'group_removed'; folder: string }
  | { kind: 'tasks_changed'; folder: string }
  | { kind: 'groups_changed' }
  | { kind: 'message_queued' }
  /** something waits for an agent that was stored with `receive` */
  | { kind: 'agent_called' }
  | { kind: 'todos_changed'; folder: string }
  | { kind: 'request_stored'; request: RequestRow }
  | { kind: 'request_over'; seq: number; outcome: Outcome }
  | { kind: 'context_reset'; folder: string }
  | { kind: 'run_finished'; folder: string; runId: string }
  /** once its answer lies there: whoever asked for it waits for that */
  | { kind: 'session_over'; folder: string; runId?: string | undefined }
