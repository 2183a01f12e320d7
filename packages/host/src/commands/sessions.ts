import type { Group, Outcome } from '@hatchway/protocol'
import { done, refused } from '../base/outcome.ts'
import { seenBy } from '../guard/guard.ts'
import { carried } from '../store/contexts.ts'
import { storeWork } from './requests.ts'
import type { CommandContext, CommandDefinition, Target } from './types.ts'
import { syncTraits } from './worktree.ts'

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
export const resetContext: CommandDefinition<'reset_context'> = {
  type: 'reset_context',
  target: (_, context) => ownTarget(context),
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
}

/** A scheduled run that says so is done. Where its commits are merged at the end, it is done once they are. */
export const finishedWork: CommandDefinition<'finished_work'> = {
  type: 'finished_work',
  target: (_, context) => ownTarget(context),
  // With the run's end its commits go to where a sync would bring them.
  traits(_, { actor, host }) {
    if (actor.kind !== 'group') return undefined
    const { folder } = actor.group
    const worktree = host?.worktree(folder)
    if (!worktree?.mergesAtEnd || host?.runOf(folder)?.kind !== 'task') return undefined
    return { ...syncTraits(worktree), action: { ...syncTraits(worktree).action, name: 'finished_work' } }
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
    if (host.worktree(folder)?.mergesAtEnd && context.actor.kind === 'group') {
      const input = { run_id: run.id, occurrence_id: run.occurrenceId }
      return storeWork({ name: 'finished_work', input, otherwise: 'This host keeps no worktrees.' }, context)
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
}

/** What is noted with a task whose run ended so. */
export const finished = 'The agent said that its work is finished.'
