import type { ErrorCode, Group } from '@hatchway/protocol'
import type { KernelTransaction } from '../../plugin-api/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { carried } from '../../store/contexts.ts'
import type { Handover } from '../../supervisor/handover.ts'
import type { DeployEnd, DeployRow } from './entity.ts'
import { deployContext } from './input.ts'
import { named } from './revisions.ts'

export const stoppedWhileBuilding =
  'The host stopped while the deploy was built or checked. Nothing was restarted.'

export const failureFrom = (error: unknown): DeployEnd => {
  const code: ErrorCode = error instanceof ServiceRefusal ? error.code : 'internal'
  return { status: 'failed', code, error: error instanceof Error ? error.message : String(error) }
}

/** What became of it, now that a process runs that can say so. */
export async function endOf(
  handover: Handover,
  row: DeployRow,
  running: Promise<string>,
): Promise<DeployEnd> {
  const { status, reason } = handover
  // Where git cannot be asked any more, the supervisor's word has to do.
  const revision = await running.catch(() => (status === 'rolled_back' ? row.from : row.to))
  const isBack = row.from !== row.to && revision === row.from
  const back = { status: 'rolled_back', code: 'rolled_back' } as const
  const failed = { status: 'failed', code: 'service_failed' } as const
  if (status === 'up' && reason !== null) return { ...(isBack ? back : failed), error: reason }
  if (status !== 'up' && isBack) {
    const branch = row.branch === null ? '' : `; ${row.branch} still has the other one`
    return {
      ...back,
      error: `${named(row.to)} did not come up, so ${named(row.from)} runs again, and is checked out without a branch${branch}. Why: ${reason ?? 'it was taken back'}`,
    }
  }
  if (status === 'failed') {
    return {
      ...failed,
      error: `${named(revision)} runs now, but did not come up at first, and there was no other to go back to. Why: ${reason}`,
    }
  }
  if (revision !== row.to) {
    return {
      status: 'failed',
      code: 'conflict',
      error: `${named(revision)} runs, as it was checked out before the host could start ${named(row.to)}.`,
    }
  }
  return { status: 'done', code: null, error: null }
}

/** Tells an agent to go on. Whoever is told it has read what the agent had that left the word. */
export function callAgent(
  transaction: KernelTransaction,
  { folder, jid }: Pick<Group, 'folder' | 'jid'>,
  word: { externalId: string; request: number | null; prompt: string; error: string | null; at: number },
): void {
  const { externalId, request, prompt, error, at } = word
  if (request !== null)
    transaction.addTaint(folder, carried, transaction.taint(folder, deployContext(request)), 'deploy', at)
  transaction.receive({
    group: folder,
    jid,
    channel: 'host',
    externalId,
    sender: 'host',
    senderName: 'Hatchway',
    text: error === null ? prompt : `The deploy did not succeed. ${error}\n\n${prompt}`,
    status: 'waiting',
    createdAt: at,
  })
}

/** Notes it in the audit log. */
export const audit = (transaction: KernelTransaction, row: DeployRow, end: DeployEnd, at: number) =>
  transaction.audit({
    at,
    group: row.group,
    actor: row.request === null ? 'operator' : 'agent',
    action: 'deploy',
    summary:
      row.from === row.to
        ? `build ${named(row.to)} and start it again`
        : `replace ${named(row.from)} by ${named(row.to)}`,
    outcome: end.status === 'done' ? 'deployed' : end.status,
    reason: end.error,
    tookMs: at - row.createdAt,
    details: { deploy: row.id, from: row.from, to: row.to },
  })
