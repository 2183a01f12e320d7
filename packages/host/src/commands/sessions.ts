import { type Group, type Outcome, payloads } from '@hatchway/protocol'
import { done, refused } from '../base/outcome.ts'
import { seenBy } from '../guard/guard.ts'
import { carried } from '../store/contexts.ts'
import { storeWork } from './requests.ts'
import { type CommandContext, defineCommand, local, type Target } from './types.ts'

/** The group whose session is meant: always the one that asks; an operator says which. */
const ownGroup = ({ actor, about }: CommandContext): Group | undefined =>
  actor.kind === 'group' ? actor.group : about

const ownTarget = (context: CommandContext): Target | Outcome => {
  const group = ownGroup(context)
  return group ? { folder: group.folder } : refused('invalid_field', 'An operator has to say which group.')
}

const note = (group: Group, action: string, summary: string, context: CommandContext) =>
  context.transaction.audit({
    at: context.now.getTime(),
    group: group.folder,
    actor: context.actor.kind === 'group' ? 'agent' : 'operator',
    decidedBy: context.actor.kind === 'group' ? 'gate' : 'operator',
    action,
    summary,
    outcome: 'allowed',
    requestId: context.request?.reply?.id ?? null,
  })

/**
 * The agent begins anew: its own session and what was said beside it are forgotten, what people are owed an answer to
 * is not. Its message to its successor is stored in the same commit, like one that came from a chat, so it waits for
 * as long as it takes. What it has read goes with the message: whoever writes to itself tells itself what strangers said.
 */
export const resetContext = defineCommand({
  type: 'reset_context',
  payload: payloads.reset_context,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => ownTarget(context),
  guard: local,
  execute({ message }, context) {
    const { transaction, guard, host, now, seq, effect } = context
    const group = ownGroup(context)
    if (!group) return refused('invalid_field', 'An operator has to say which group.')
    const { folder, jid } = group
    const at = now.getTime()
    const run = host?.runOf(folder)
    transaction.forgetSession(folder)
    const hasMessage = message !== undefined && message.trim() !== ''
    if (hasMessage) {
      if (guard) {
        transaction.addTaint(folder, carried, seenBy(folder, guard, context), 'reset_context', at)
      }
      transaction.receive({
        group: folder,
        jid,
        channel: 'host',
        // Whom only a deploy has called does not become somebody else by calling itself.
        externalId: run?.isByDeploy ? `deploy:reset:${seq}` : `reset:${seq}`,
        sender: 'host',
        senderName: 'Hatchway',
        text: message,
        status: 'waiting',
        createdAt: at,
      })
    }
    note(group, 'reset_context', hasMessage ? 'begin anew, with a message to itself' : 'begin anew', context)
    effect({ kind: 'context_reset', folder })
    effect({ kind: 'session_over', folder, runId: run?.id })
    return done({ status: 'reset', message_stored: hasMessage })
  },
})

/** A scheduled run that says so is done. Where a plugin has work to do at its end, it is done once that is. */
export const finishedWork = defineCommand({
  type: 'finished_work',
  payload: payloads.finished_work,
  permission: { main: 'own', others: 'own' },
  target: (_, context) => ownTarget(context),
  // What is done at the run's end is judged as if it had been asked for by itself.
  guard(_, { actor, host }) {
    if (actor.kind !== 'group') return 'local'
    const { folder } = actor.group
    const finishing = host?.finishing(folder)
    if (!finishing || host?.runOf(folder)?.kind !== 'task') return 'local'
    const { traits } = finishing
    return { ...traits, action: { ...traits.action, name: 'finished_work' } }
  },
  execute(_, context) {
    const { host, transaction, now, effect } = context
    const group = ownGroup(context)
    if (!group) return refused('invalid_field', 'An operator has to say which group.')
    if (!host) return refused('unavailable', 'No agents are run here, so there is no run to finish.')
    const { folder } = group
    const run = host.runOf(folder)
    if (context.isReleased && context.heldIn !== run?.id) {
      return refused('wrong_state', 'The run that asked for it has ended.')
    }
    if (run?.kind !== 'task' || run.occurrenceId === null) {
      return refused('wrong_state', 'No scheduled run of this group is going on.')
    }
    const finishing = host.finishing(folder)
    if (finishing && context.actor.kind === 'group') {
      const input = { run_id: run.id, occurrence_id: run.occurrenceId }
      const otherwise = 'This host cannot do what has to be done before the run is finished.'
      return storeWork({ name: finishing.work, input, otherwise }, context)
    }
    if (!transaction.finishOccurrence(run.occurrenceId, finished, now.getTime())) {
      return refused('wrong_state', 'The run is finished already.')
    }
    note(group, 'finished_work', `end the scheduled run ${run.id} as done`, context)
    effect({ kind: 'run_finished', folder, runId: run.id })
    effect({ kind: 'tasks_changed', folder })
    effect({ kind: 'session_over', folder, runId: run.id })
    return done({ status: 'finished', run_id: run.id })
  },
})

/** What is noted with a task whose run ended so. */
export const finished = 'The agent said that its work is finished.'
