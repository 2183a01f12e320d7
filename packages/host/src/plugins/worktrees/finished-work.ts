import { z } from 'zod'
import type { Work } from '../../commands/service-tools.ts'
import { finished } from '../../commands/sessions.ts'
import type { Effects } from '../../outcomes/effects.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { Store } from '../../store/types.ts'
import { approvedIn, type Worktrees } from './worktrees.ts'

const inputSchema = z.object({ run_id: z.string(), occurrence_id: z.string() })

/**
 * The end of a scheduled run whose commits are merged with it: first they are, then it is done. If they cannot be, the
 * run goes on, and its agent is told what is in the way. Asked again after a restart, it is merged already.
 */
export const createFinishedWork = (options: {
  worktrees: Pick<Worktrees, 'sync' | 'work'>
  store: Pick<Store, 'transaction'>
  effects: Pick<Effects, 'apply'>
  now(): number
}): Work => ({
  name: 'finished_work',
  repeatable: true,
  timeoutMs: options.worktrees.work.timeoutMs,
  ...(options.worktrees.work.evidence ? { evidence: options.worktrees.work.evidence } : {}),
  async call(input, { group: { folder }, requestId, seq, signal, progress }) {
    const { run_id, occurrence_id } = inputSchema.parse(input)
    const merged = await options.worktrees.sync(folder, {
      id: String(seq),
      requestId,
      actor: 'agent',
      approved: approvedIn(input),
      signal,
      progress,
    })
    const isDone = options.store.transaction(transaction => {
      const done = transaction.finishOccurrence(occurrence_id, finished, options.now())
      if (done) {
        transaction.audit({
          at: options.now(),
          group: folder,
          actor: 'agent',
          action: 'finished_work',
          summary: `end the scheduled run ${run_id} as done, with its commits merged`,
          outcome: 'allowed',
          requestId,
        })
      }
      return done
    })
    if (!isDone) throw new ServiceRefusal('wrong_state', `${merged.message} The run had ended already.`)
    options.effects.apply([
      { kind: 'run_finished', folder, runId: run_id },
      { kind: 'tasks_changed', folder },
      { kind: 'session_over', folder, runId: run_id },
    ])
    return { status: 'finished', run_id, message: merged.message }
  },
})
