import { refused } from '../base/outcome.ts'
import type { Traits } from '../guard/guard.ts'
import { self, storeWork } from './requests.ts'
import type { CommandContext, CommandDefinition, WorktreeRules } from './types.ts'

const none = 'No repository is configured for this group.'

const worktreeOf = ({ actor, host }: CommandContext) =>
  actor.kind === 'group' ? host?.worktree(actor.group.folder) : undefined

/** Commits may hold anything that the agent has read, and others build on them. */
export const syncTraits = ({ pushes, repo, branch, policy, remote }: WorktreeRules): Traits => ({
  action: {
    name: 'sync_worktree',
    summary: `merge the commits of its worktree${pushes ? ', and push them' : ''}`,
    // Which commits is looked up before anybody is asked.
    payload: { repo, branch, policy, ...(pushes ? { push_to: remote } : {}) },
  },
  reach: pushes ? 'both' : 'dangerous',
  reads: { corrupted: false, secret: false },
})

/** What the group's agent has committed goes to where the configuration says; the sender's own, whatever the file says. */
export const syncWorktree: CommandDefinition<'sync_worktree'> = {
  type: 'sync_worktree',
  target: (_, context) => self(context),
  traits(_, context) {
    const worktree = worktreeOf(context)
    // What is refused anyway is refused at once.
    return worktree && syncTraits(worktree)
  },
  execute: (_, context) =>
    worktreeOf(context)
      ? storeWork({ name: 'sync_worktree', input: {}, otherwise: none }, context)
      : refused('unavailable', none),
}
