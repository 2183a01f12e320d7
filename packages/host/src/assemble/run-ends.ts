import type { RequestQueue } from '../services/request-queue.ts'
import type { DaemonKernel } from './kernel.ts'

/** What follows the end of a group's run. The next one may begin once everything is decided that it had asked for. */
export interface RunEnds {
  /** the group's container is gone, and with it whoever waited for answers */
  gone(folder: string): void
  /** the last run has left something in its directories that is not decided yet */
  isLeaving(folder: string): boolean
  /** ends an idle session of the group's agent and resolves when it is gone; false: the agent is at work */
  endSession(folder: string): Promise<boolean>
  /** resolves once everything is decided that lies in the group's directories */
  decided(folder: string): Promise<void>
}

export function createRunEnds(
  { agents, contexts, notices, replies, retries, spool }: DaemonKernel,
  requests: RequestQueue,
): RunEnds {
  const leaving = new Set<string>()
  /** who waits for the end of a group's session */
  const waiting = new Map<string, () => void>()
  const decided = (folder: string) => new Promise<void>(resolve => spool.whenDrained(folder, resolve))

  return {
    gone(folder) {
      requests.containerGone(folder)
      replies.clear(folder)
      waiting.get(folder)?.()
      waiting.delete(folder)
      leaving.add(folder)
      // What a run has asked for is judged by what that run has read, and before the next one begins.
      const forget = () => {
        // What it had left in its directories is taken only now, and nobody waits for that either.
        requests.containerGone(folder)
        contexts.gone(folder)
        leaving.delete(folder)
        notices.publish({ kind: 'agent_called' })
      }
      spool.whenDrained(folder, () => retries.inBackground('forgetting what a run has read', forget))
    },
    isLeaving: folder => leaving.has(folder),
    async endSession(folder) {
      const queue = agents.runs()?.queue
      const session = queue?.running().find(({ group }) => group === folder)
      if (session && session.state !== 'idle') return false
      if (session) {
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.set(folder, resolve)
        queue?.close(folder, session.runId)
        await promise
      }
      await decided(folder)
      // One that found its place taken would lie there afterwards.
      replies.clear(folder)
      return true
    },
    decided,
  }
}
