import { carried, folderContext, nameContext, taskContext } from '../store/contexts.ts'
import type { Store } from '../store/types.ts'
import type { GuardRules } from './guard.ts'

/** in the place of a group: what was merged into a repository that several groups read */
const repoOwner = (name: string): string => `repo:${name}`

/** the channel of what the host itself says to an agent */
const hostChannel = 'host'

export interface Contexts {
  /** before a run starts: what it is told counts as read */
  begins(folder: string, run: { taskId: string | null; repo: string | undefined }): void
  /** before its commits can be read by the other groups that have the repository */
  merges(folder: string, repo: string, readers: readonly string[]): void
  /** the group's run is over, and everything it has asked for is decided */
  gone(folder: string): void
}

export function createContexts(
  store: Pick<Store, 'taints' | 'agents'>,
  rules: Pick<GuardRules, 'containsSecrets'>,
): Contexts {
  const ofFiles = (group: string) => ({ group, context: folderContext })
  return {
    begins(folder, { taskId, repo }) {
      const told = [nameContext, carried, ...(taskId === null ? [] : [taskContext(taskId)])]
      for (const context of told) store.taints.join({ group: folder, context }, folder)
      if (repo !== undefined) store.taints.join(ofFiles(repoOwner(repo)), folder)
    },
    merges(folder, repo, readers) {
      const owner = repoOwner(repo)
      store.taints.join(ofFiles(folder), owner)
      const seen = { corrupted: false, secret: rules.containsSecrets(folder) }
      store.taints.add(owner, folderContext, seen, 'containsSecrets', Date.now())
      for (const reader of readers) store.taints.join(ofFiles(owner), reader)
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
