import { type Group, payloads } from '@hatchway/protocol'
import { refused } from '../../base/outcome.ts'
import { self, storeWork } from '../../commands/requests.ts'
import { type CommandContext, defineCommand } from '../../commands/types.ts'
import type { Traits } from '../../guard/guard.ts'
import { type GroupRepository, noRepository } from './repositories.ts'

/** Commits may hold anything that the agent has read, and others build on them. */
export const syncTraits = ({
  name,
  repo: { branch, policy, remote },
}: Pick<GroupRepository, 'name' | 'repo'>): Traits => ({
  action: {
    name: 'sync_worktree',
    summary: `merge the commits of its worktree${remote === undefined ? '' : ', and push them'}`,
    // Which commits is looked up before anybody is asked.
    payload: { repo: name, branch, policy, ...(remote === undefined ? {} : { push_to: remote }) },
  },
  reach: remote === undefined ? 'dangerous' : 'both',
  reads: { corrupted: false, secret: false },
})

export interface SyncCommandOptions {
  repositoryOf(folder: string): Pick<GroupRepository, 'name' | 'repo'> | undefined
  /** how long a sync may take; undefined: this host does none */
  timeoutMs: number | undefined
}

/** What the group's agent has committed goes to where the configuration says; the sender's own, whatever the file says. */
export function syncCommand({ repositoryOf, timeoutMs }: SyncCommandOptions) {
  const ofActor = ({ actor }: CommandContext) =>
    actor.kind === 'group' ? repositoryOf(actor.group.folder) : undefined
  return defineCommand({
    type: 'sync_worktree',
    payload: payloads.sync_worktree,
    permission: { main: 'own', others: 'own' },
    target: (_, context) => self(context),
    guard(_, context) {
      const repository = ofActor(context)
      // What is refused anyway is refused at once.
      return repository ? syncTraits(repository) : 'local'
    },
    offer: ({ folder }: Group) =>
      timeoutMs !== undefined && repositoryOf(folder)
        ? { command: 'sync_worktree', timeout_ms: timeoutMs }
        : undefined,
    execute: (_, context) =>
      ofActor(context)
        ? storeWork({ name: 'sync_worktree', input: {}, otherwise: noRepository }, context)
        : refused('unavailable', noRepository),
  })
}
