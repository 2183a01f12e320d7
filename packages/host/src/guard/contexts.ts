import { carried, folderContext, nameContext, taskContext } from '../store/contexts.ts'
import type { Store } from '../store/types.ts'
import type { GuardRules } from './guard.ts'

/** the channel of what the host itself says to an agent */
const hostChannel = 'host'

export interface Contexts {
  /** before a run starts: what it is told counts as read */
  begins(folder: string, run: { taskId: string | null; shares: readonly string[] }): void
  /**
   * before others can read what the group has written: it becomes part of `shared`, which stands in the place of a group
   * and taints these readers now, and whoever shares it when its next run begins
   */
  share(folder: string, shared: string, readers: readonly string[]): void
  /** the group's run is over, and everything it has asked for is decided */
  gone(folder: string): void
}

export function createContexts(
  store: Pick<Store, 'taints' | 'agents'>,
  rules: Pick<GuardRules, 'containsSecrets' | 'writersFor'>,
): Contexts {
  const ofFiles = (group: string) => ({ group, context: folderContext })
  return {
    begins(folder, { taskId, shares }) {
      const told = [nameContext, carried, ...(taskId === null ? [] : [taskContext(taskId)])]
      for (const context of told) store.taints.join({ group: folder, context }, folder)
      for (const shared of shares) store.taints.join(ofFiles(shared), folder)
      // What they have written stays when they are wiped or have the directory no longer.
      for (const writer of rules.writersFor?.(folder) ?? []) store.taints.join(ofFiles(writer), folder)
    },
    share(folder, shared, readers) {
      store.taints.join(ofFiles(folder), shared)
      const seen = { corrupted: false, secret: rules.containsSecrets(folder) }
      store.taints.add(shared, folderContext, seen, 'containsSecrets', Date.now())
      for (const reader of readers) store.taints.join(ofFiles(shared), reader)
    },
    gone(folder) {
      // Whoever was given such a message and did not answer it leaves it to the next one.
      const isTold = store.agents
        .incoming({ group: folder, status: 'waiting' })
        .every(({ channel }) => channel !== hostChannel)
      if (isTold) store.taints.clear(folder, carried)
    },
  }
}
