import type { Owner } from '@hatchway/spool'
import type { Config } from '../config.ts'

/**
 * Whom a group's runs run as, and whom what they write to or have to remove belongs to. undefined: the host's own user.
 *
 * A host that is root gives each group a user of its own, because the kernel counts much by user: inotify instances and
 * watches, processes, keys, queues. With one user for all, one group could use up what another needs. Who starts
 * containers by other means, or names `container.uid`, has one user for all groups.
 */
export type Owners = (folder: string) => Owner | undefined

const sharedUid = 1000

/** For a host that runs as `host`; `own` is the group's number. */
export function ownerFor(
  config: Pick<Config, 'agents' | 'container'>,
  host: number | undefined,
  own: () => number,
): Owner | undefined {
  if (host !== 0) return undefined
  const uid = config.container.uid ?? (config.agents.enabled === 'no' ? sharedUid : own())
  return { uid, gid: config.container.gid ?? uid }
}

/** What owners follow from, in a word: where it changes, files have to change hands. */
export const ownerRule = ({ agents, container }: Pick<Config, 'agents' | 'container'>): string =>
  [container.uid ?? (agents.enabled === 'no' ? sharedUid : 'each'), container.gid ?? 'same'].join(':')

export function createOwners(
  config: Pick<Config, 'agents' | 'container'>,
  store: { agentUser(folder: string): number },
): Owners {
  const host = process.getuid?.()
  const known = new Map<string, Owner | undefined>()
  return folder => {
    const found = known.get(folder)
    if (found) return found
    const owner = ownerFor(config, host, () => store.agentUser(folder))
    if (owner) known.set(folder, owner)
    return owner
  }
}
