import { refused } from './outcome.ts'
import { self, storeWork } from './requests.ts'
import type { Operation, OperationContext } from './types.ts'

const none = 'No repository is configured for this group.'

const worktreeOf = ({ actor, host }: OperationContext) =>
  actor.kind === 'group' ? host?.worktree(actor.group.folder) : undefined

/** What the group's agent has committed goes to where the configuration says; the sender's own, whatever the file says. */
export const syncWorktree: Operation<'sync_worktree'> = {
  type: 'sync_worktree',
  target: (_, context) => self(context),
  traits(_, context) {
    const worktree = worktreeOf(context)
    // What is refused anyway is refused at once.
    if (!worktree) return undefined
    return {
      action: {
        name: 'sync_worktree',
        summary: `merge the commits of its worktree${worktree.pushes ? ', and push them' : ''}`,
        payload: {},
      },
      reach: worktree.pushes ? 'both' : 'dangerous',
      reads: { corrupted: false, secret: false },
    }
  },
  execute: (_, context) =>
    worktreeOf(context)
      ? storeWork({ name: 'sync_worktree', input: {}, otherwise: none }, context)
      : refused('unavailable', none),
}
