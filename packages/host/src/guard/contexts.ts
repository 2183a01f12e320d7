import type { Store } from '../store/types.ts'

/** The context that goes on from one session to the next, for as long as the agent keeps its session. */
const ongoing = 'session'
/** what an agent that begins anew has told itself */
const carried = 'carried'

/**
 * Which context a group's agent is in, as what it has read counts for that and for no other. A run with a context of its
 * own begins with what the task that called it was made in, and takes what it has read with it when it ends.
 */
export interface Contexts {
  of(folder: string): string
  begins(folder: string, run: { id: string; isolated: boolean; taskId: string | null }): void
  gone(folder: string, runId: string): void
}

export function createContexts(store: Pick<Store, 'taints' | 'agents'>): Contexts {
  const current = new Map<string, string>()
  return {
    of: folder => current.get(folder) ?? ongoing,
    begins(folder, { id, isolated, taskId }) {
      const context = isolated ? `run:${id}` : ongoing
      current.set(folder, context)
      if (taskId === null) return
      store.taints.join(folder, `task:${taskId}`, context)
    },
    gone(folder, runId) {
      current.delete(folder)
      store.taints.clear(folder, `run:${runId}`)
      // An agent that keeps no session has forgotten everything.
      if (store.agents.session(folder) !== undefined) return
      store.taints.clear(folder, ongoing)
      // What it has told its successor comes from what it had read.
      store.taints.join(folder, carried, ongoing)
      store.taints.clear(folder, carried)
    },
  }
}
