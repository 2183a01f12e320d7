import type { Command, CommandType, Outcome, Payload } from '@hatchway/protocol'
import { authorise } from '../policy/permissions.ts'
import { refreshGroups, registerGroup, unregisterGroup } from './groups.ts'
import { react, sendMessage } from './messages.ts'
import { askUser } from './questions.ts'
import { callService, cancelRequest } from './requests.ts'
import { cancelTask, pauseTask, resumeTask, scheduleTask, updateTask } from './tasks.ts'
import type { Operation, OperationContext, Target } from './types.ts'
import * as unavailable from './unavailable.ts'

export { addGroup } from './groups.ts'

export const operations: { [T in CommandType]: Operation<T> } = {
  send_message: sendMessage,
  react,
  schedule_task: scheduleTask,
  update_task: updateTask,
  pause_task: pauseTask,
  resume_task: resumeTask,
  cancel_task: cancelTask,
  register_group: registerGroup,
  unregister_group: unregisterGroup,
  refresh_groups: refreshGroups,
  schedule_host_job: unavailable.scheduleHostJob,
  create_periodic_agent: unavailable.createPeriodicAgent,
  deploy: unavailable.deploy,
  reset_context: unavailable.resetContext,
  finished_work: unavailable.finishedWork,
  sync_worktree: unavailable.syncWorktree,
  call_service: callService,
  ask_user: askUser,
  cancel_request: cancelRequest,
  check_shell: unavailable.checkShell,
}

/** The only way to have a command executed: nothing happens before the permission table has been asked. */
export const perform = (command: Command, context: OperationContext): Outcome | null =>
  judge(command, context)

const judge = <T extends CommandType>(
  { type, payload }: { type: T; payload: Payload<T> },
  context: OperationContext,
): Outcome | null => {
  const operation: Operation<T> = operations[type]
  const target = operation.target(payload, context)
  if (isOutcome(target)) return target
  return authorise(type, context.actor, target) ?? operation.execute(payload, context)
}

const isOutcome = (target: Target | Outcome): target is Outcome => target !== 'host' && 'ok' in target
