import { type Command, type CommandType, commandSchema, type Outcome, type Payload } from '@hatchway/protocol'
import { refused } from '../base/outcome.ts'
import { applyReleased, digestOf, judge, noteTask, type Traits } from '../guard/guard.ts'
import { settledAddress } from './address.ts'
import { deploy } from './deploy.ts'
import { refreshGroups, registerGroup, unregisterGroup } from './groups.ts'
import { hold } from './hold.ts'
import { scheduleHostJob } from './host-jobs.ts'
import { react, sendMessage } from './messages.ts'
import { createPeriodicAgent } from './periodic.ts'
import { authorise } from './policy/permissions.ts'
import { askUser } from './questions.ts'
import { callService, cancelRequest } from './requests.ts'
import { finishedWork, resetContext } from './sessions.ts'
import { checkShell } from './shell.ts'
import { cancelTask, pauseTask, resumeTask, scheduleTask, updateTask } from './tasks.ts'
import type { CommandContext, CommandDefinition, Target } from './types.ts'
import { showWithheld } from './withheld.ts'
import { syncWorktree } from './worktree.ts'

export { addGroup } from './groups.ts'

export const commandDefinitions: { [T in CommandType]: CommandDefinition<T> } = {
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
  show_withheld: showWithheld,
  schedule_host_job: scheduleHostJob,
  create_periodic_agent: createPeriodicAgent,
  deploy,
  reset_context: resetContext,
  finished_work: finishedWork,
  sync_worktree: syncWorktree,
  call_service: callService,
  ask_user: askUser,
  cancel_request: cancelRequest,
  check_shell: checkShell,
}

/** The only way to have a command executed: nothing happens before the permission table has been asked. */
export const perform = (command: Command, context: CommandContext): Outcome | null => decide(command, context)

const decide = <T extends CommandType>(
  { type, payload: given }: { type: T; payload: Payload<T> },
  context: CommandContext,
): Outcome | null => {
  let payload = given
  if ('jid' in given && typeof given.jid === 'string') {
    const jid = settledAddress(given.jid, context)
    if (typeof jid !== 'string') return jid
    if (jid !== given.jid) payload = { ...given, jid }
  }
  const operation: CommandDefinition<T> = commandDefinitions[type]
  const target = operation.target(payload, context)
  if (isOutcome(target)) return target
  const notAllowed = authorise(type, context.actor, target)
  if (notAllowed) return notAllowed
  const { guard, actor } = context
  if (!guard || actor.kind !== 'group') return operation.execute(payload, context)
  const { folder } = actor.group
  const traits = operation.traits?.(payload, context)
  if (traits && context.isReleased) {
    if (isAnother(traits.action, context)) return changed
    applyReleased(traits, folder, guard, context)
  } else if (traits) {
    const judgement = judge(commandSchema.parse({ type, payload }), traits, actor.group, guard, {
      ...context,
      requestId: context.request?.reply?.id ?? null,
      runId: context.host?.runOf(folder)?.id,
    })
    if (judgement.kind === 'deny') return judgement.outcome
    if (judgement.kind === 'hold') return hold(judgement.held, actor.group, guard, context)
  }
  const outcome = operation.execute(payload, context)
  if (outcome?.ok && writesTasks.has(type)) {
    noteTask(outcome.result.task_id, folder, guard, context)
  }
  return outcome
}

const writesTasks: ReadonlySet<CommandType> = new Set(['schedule_task', 'update_task', 'schedule_host_job'])
const changed = refused('conflict', 'What it would do is no longer what was shown for a decision. Ask again.')

/** Whether it would do something else by now than whoever decided was shown. */
const isAnother = ({ name, payload }: Traits['action'], { shown }: CommandContext): boolean =>
  shown !== undefined && digestOf({ name, payload: { ...payload, ...shown.evidence } }) !== shown.digest

const isOutcome = (target: Target | Outcome): target is Outcome => target !== 'host' && 'ok' in target
