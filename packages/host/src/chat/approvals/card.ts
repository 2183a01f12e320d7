import type { Config } from '../../config.ts'
import type { ApprovalRow, ApprovalStatus, ApprovalStore } from '../../store/types.ts'
import { mayDecide, operator } from './approvers.ts'
import { codeIn } from './code.ts'

/** As people see it. The code is not part of it: whoever sees a card has buttons. */
export interface ApprovalCard {
  id: string
  action: Omit<ApprovalRow['action'], 'always' | 'standing'>
  why: string
  status: ApprovalStatus
  decided_by: string | null
  words: string | null
  always: boolean
  expires_at: string
  /** whether the operator may */
  can_decide: boolean
  /** whether that may be for ever */
  can_always: boolean
  /** whether the tool may be allowed, whatever it is called with */
  can_always_tool: boolean
}

export const cardOf = (
  config: Pick<Config, 'groups'>,
  { action: { always, standing, ...action }, ...row }: ApprovalRow,
): ApprovalCard => ({
  id: String(row.seq),
  action,
  why: row.why,
  status: row.status,
  decided_by: row.decidedBy,
  words: row.words,
  always: row.rule !== null,
  expires_at: new Date(row.expiresAt).toISOString(),
  can_decide: row.status === 'open' && mayDecide(config, row.group, operator),
  can_always: row.status === 'open' && always,
  can_always_tool: row.status === 'open' && standing,
})

/** The card on a platform, which shows a part of what is long: nothing of which only a part was shown is allowed for ever. */
export const cardOnPlatform = (card: ApprovalCard): ApprovalCard =>
  card.action.payload.more > 0 ? { ...card, can_always: false } : card

export const byId = (approvals: Pick<ApprovalStore, 'approval'>, id: string): ApprovalRow | undefined =>
  /^\d{1,15}$/.test(id) ? approvals.approval(Number(id)) : undefined

/** For whoever is at the host, and may decide for every group: by its id, or by its code while it is open. */
export function findApproval(
  approvals: Pick<ApprovalStore, 'approval' | 'open'>,
  which: string,
): ApprovalRow | undefined {
  const code = codeIn(which)
  return code === undefined ? byId(approvals, which) : approvals.open().find(row => row.code === code)
}
