import type { CommandType } from '@hatchway/protocol'
import { refused } from './outcome.ts'
import type { Operation, OperationContext, Target } from './types.ts'

/** Commands that are understood and judged like any other, on a host that has nothing to do them with. */
const unavailable = <T extends CommandType>(
  type: T,
  target: (context: OperationContext) => Target,
  reason: string,
): Operation<T> => ({
  type,
  target: (_, context) => target(context),
  execute: () => refused('unavailable', reason),
})

const host = (): Target => 'host'
const self = ({ actor }: OperationContext): Target =>
  actor.kind === 'group' ? { folder: actor.group.folder } : 'host'

export const scheduleHostJob = unavailable(
  'schedule_host_job',
  host,
  'This host runs no jobs of its own for agents.',
)
export const createPeriodicAgent = unavailable(
  'create_periodic_agent',
  host,
  'This host creates no periodic agents. Register a group and schedule a task for it.',
)
export const deploy = unavailable('deploy', host, 'This host cannot be deployed by an agent.')
export const resetContext = unavailable('reset_context', self, 'This host keeps no context to reset.')
export const finishedWork = unavailable('finished_work', self, 'This host has no run to finish.')
export const syncWorktree = unavailable('sync_worktree', self, 'This host keeps no worktrees.')
