import { type Refusal, refusal } from '@hatchway/protocol'
import type { ApprovalRow, RuleRow, Store, Transaction } from '../../store/types.ts'
import { nameOf, type Person, whoIs } from './approvers.ts'

/** "Allow always": this group, this action, with exactly what was in it. */
export function makeRule(
  transaction: Transaction,
  { group, action: { name, summary } }: ApprovalRow,
  digest: string,
  person: Person,
  at: number,
): number {
  const id = transaction.insertRule({ group, name, digest, summary, madeBy: nameOf(person), createdAt: at })
  transaction.audit({
    at,
    group,
    actor: whoIs(person),
    action: 'approval_rule',
    summary: `always allow: ${summary}`,
    outcome: 'noted',
    details: { rule: id, name, digest },
  })
  return id
}

/** Taken back by whoever may use the command line. */
export async function revokeRule(store: Store, id: number, at: number): Promise<RuleRow | Refusal> {
  const rule = store.transaction(transaction => {
    const revoked = transaction.deleteRule(id)
    if (!revoked) return undefined
    const { group, name, digest, summary } = revoked
    transaction.audit({
      at,
      group,
      actor: 'operator',
      action: 'approval_rule',
      summary: `no longer always allow: ${summary}`,
      outcome: 'noted',
      details: { rule: id, name, digest },
    })
    return revoked
  })
  return rule ?? refusal('not_found', `There is no rule ${id}.`)
}
