import { type Refusal, refusal } from '@hatchway/protocol'
import { digestOf, type Held, standingDigestOf } from '../../guard/guard.ts'
import type { ApprovalRow, RuleRow, Store, Transaction } from '../../store/types.ts'
import { nameOf, type Person, whoIs } from './approvers.ts'
import type { Decided } from './code.ts'

type NewRule = Pick<RuleRow, 'scope' | 'digest' | 'summary'>

/** What a decision makes a rule of; undefined: nothing, it is for this time only. */
export function ruleFrom(
  decision: Decided,
  { action: { summary } }: Pick<ApprovalRow, 'action'>,
  held: Held,
): NewRule | undefined {
  if (decision === 'always') return { scope: 'exact', digest: digestOf(held.action), summary }
  const digest = decision === 'always_tool' ? standingDigestOf(held) : undefined
  return digest === undefined
    ? undefined
    : { scope: 'tool', digest, summary: `${summary}, whatever it is called with` }
}

/** "Allow always": this group, this action with exactly what was in it, or this tool. */
export function makeRule(
  transaction: Transaction,
  { group, action: { name } }: ApprovalRow,
  { scope, digest, summary }: NewRule,
  person: Person,
  at: number,
): number {
  const madeBy = nameOf(person)
  const id = transaction.insertRule({ group, name, scope, digest, summary, madeBy, createdAt: at })
  transaction.audit({
    at,
    group,
    actor: whoIs(person),
    action: 'approval_rule',
    summary: `always allow: ${summary}`,
    outcome: 'noted',
    details: { rule: id, name, scope, digest },
  })
  return id
}

/** Taken back by whoever may use the command line. */
export async function revokeRule(store: Store, id: number, at: number): Promise<RuleRow | Refusal> {
  const rule = store.transaction(transaction => {
    const revoked = transaction.deleteRule(id)
    if (!revoked) return undefined
    const { group, name, scope, digest, summary } = revoked
    transaction.audit({
      at,
      group,
      actor: 'operator',
      action: 'approval_rule',
      summary: `no longer always allow: ${summary}`,
      outcome: 'noted',
      details: { rule: id, name, scope, digest },
    })
    return revoked
  })
  return rule ?? refusal('not_found', `There is no rule ${id}.`)
}
