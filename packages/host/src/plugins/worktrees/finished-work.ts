import { z } from 'zod'
import type { Work } from '../../commands/service-tools.ts'
import { finished } from '../../commands/sessions.ts'
import type { PluginHost } from '../../plugin-api/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { approvedIn, type Worktrees } from './worktrees.ts'

const inputSchema = z.object({ run_id: z.string(), occurrence_id: z.string() })

/**
 * The end of a scheduled run whose commits are merged with it: first they are, then it is done. If they cannot be, the
 * run goes on, and its agent is told what is in the way. Asked again after a restart, it is merged already.
 */
export const createFinishedWork = (
  host: Pick<PluginHost, 'transaction' | 'now'>,
  worktrees: Pick<Worktrees, 'sync' | 'work'>,
): Work => ({
  ...worktrees.work,
  name: 'finished_work',
  async call(input, { group: { folder }, requestId, seq, signal, progress }) {
    const { run_id, occurrence_id } = inputSchema.parse(input)
    const approved = approvedIn(input)
    const merged = await worktrees.sync(folder, { id: String(seq), requestId, approved, signal, progress })
    const isDone = host.transaction((transaction, notify) => {
      const at = host.now().getTime()
      if (!transaction.finishOccurrence(occurrence_id, finished, at)) return false
      transaction.audit({
        at,
        group: folder,
        actor: 'agent',
        action: 'finished_work',
        summary: `end the scheduled run ${run_id} as done, with its commits merged`,
        outcome: 'allowed',
        requestId,
      })
      notify({ kind: 'run_finished', folder, runId: run_id })
      notify({ kind: 'tasks_changed', folder })
      notify({ kind: 'session_over', folder, runId: run_id })
      return true
    })
    if (!isDone) throw new ServiceRefusal('wrong_state', `${merged.message} The run had ended already.`)
    return { status: 'finished', run_id, message: merged.message }
  },
})
