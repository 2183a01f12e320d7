import type { Store } from '../store/types.ts'

/** The context that goes on from one session to the next, for as long as the agent keeps its session. */
const ongoing = 'session'
/** what the host is to tell an agent from an agent: one that begins anew to itself, one that deploys to its next run */
export const carried = 'carried'
/** the channel of what the host itself says to an agent */
const hostChannel = 'host'

/** what the host itself has laid down for every context of the group's agent, as another agent asked */
export const given = 'given'
const ownRun = 'run:'
/** what a task was made in */
export const taskContext = (taskId: string): string => `task:${taskId}`
/** what a deploy is to tell the next run, until it does */
export const deployContext = (request: number): string => `deploy:${request}`

/**
 * Which context a group's agent is in, as what it has read counts for that and for no other. A run with a context of its
 * own begins with what the task that called it was made in, and takes what it has read with it when it ends.
 *
 * What a run has left in its directories is still the run's: `gone` is for when all of that is decided.
 */
export interface Contexts {
  of(folder: string): string
  begins(folder: string, run: { id: string; isolated: boolean; taskId: string | null }): void
  /** the group's run is over, and everything it has asked for is decided */
  gone(folder: string): void
  /** groups of which something is left that may have to go */
  tainted(): readonly string[]
}

export function createContexts(store: Pick<Store, 'taints' | 'agents'>): Contexts {
  const ownRuns = () => store.taints.all().filter(({ context }) => context.startsWith(ownRun))
  // What an earlier process had not decided of its runs is decided now, and as theirs.
  const current = new Map(ownRuns().map(({ group, context }) => [group, context]))
  return {
    of: folder => current.get(folder) ?? ongoing,
    begins(folder, { id, isolated, taskId }) {
      const context = isolated ? `${ownRun}${id}` : ongoing
      current.set(folder, context)
      store.taints.join(folder, given, context)
      // What an agent has told its successor comes from what it had read.
      if (!isolated) store.taints.join(folder, carried, context)
      if (taskId !== null) store.taints.join(folder, taskContext(taskId), context)
    },
    gone(folder) {
      current.delete(folder)
      for (const { group, context } of ownRuns()) if (group === folder) store.taints.clear(folder, context)
      // Whoever was given such a message and did not answer it leaves it to the next one.
      const isTold = store.agents
        .incoming({ group: folder, status: 'waiting' })
        .every(({ channel }) => channel !== hostChannel)
      if (isTold) store.taints.clear(folder, carried)
      // An agent that keeps no session has forgotten everything.
      if (store.agents.session(folder) === undefined) store.taints.clear(folder, ongoing)
    },
    tainted: () => [...new Set(store.taints.all().map(({ group }) => group))],
  }
}
