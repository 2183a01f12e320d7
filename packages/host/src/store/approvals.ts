import { pruneCards } from './cards.ts'
import { type Connection, where } from './connection.ts'
import { type ApprovalRow, approvalSchema, type Ending, type RuleRow, ruleSchema } from './entities/card.ts'
import type { NewIncoming } from './entities/message.ts'
import { tableOf } from './table.ts'

const approvalTable = tableOf('approvals', approvalSchema)
const ruleTable = tableOf('approval_rules', ruleSchema)

/** Inside one transaction. */
export interface ApprovalTransaction {
  insertApproval(row: ApprovalRow): void
  /** false: it was not open any more */
  closeApproval(seq: number, ending: Ending): boolean
  /** the number of the rule, which may have been there before */
  insertRule(rule: Omit<RuleRow, 'id'>): number
  deleteRule(id: number): RuleRow | undefined
  /** keeps what somebody said; undefined: it came before */
  hear(said: NewIncoming): number | undefined
}

export interface ApprovalStore {
  approval(seq: number): ApprovalRow | undefined
  byMessage(messageId: number): ApprovalRow | undefined
  byCode(jid: string, code: string): ApprovalRow | undefined
  /** the newest, newest first */
  list(filter: { group?: string; open?: boolean; limit: number }): readonly ApprovalRow[]
  open(): readonly ApprovalRow[]
  /** how many of a group were asked since then, and are not needed any more */
  withdrawnSince(group: string, since: number): number
  ruleFor(group: string, digest: string): RuleRow | undefined
  rules(group?: string): readonly RuleRow[]
}

export interface ApprovalTable {
  store: ApprovalStore
  within: ApprovalTransaction
  /** nothing of a group that is gone can be decided any more, and its rules go with it */
  forgetGroup(folder: string): void
  /** forgets those whose message is forgotten */
  prune(): void
}

/** `receive` stores what people say, inside a transaction that is open already. */
export function createApprovalTable(
  { sql }: Connection,
  receive: (message: NewIncoming) => number | undefined,
): ApprovalTable {
  return {
    store: {
      approval: seq => approvalTable.maybe(sql('SELECT * FROM approvals WHERE seq = ?').get(seq)),
      byMessage: id => approvalTable.maybe(sql('SELECT * FROM approvals WHERE message_id = ?').get(id)),
      byCode: (jid, code) =>
        approvalTable.maybe(sql('SELECT * FROM approvals WHERE jid = ? AND code = ?').get(jid, code)),
      list: ({ group, open: isOpen = false, limit }) => {
        const { text, values } = where({ 'group_folder = ?': group, "status = 'open'": isOpen || undefined })
        return sql(`SELECT * FROM approvals ${text} ORDER BY seq DESC LIMIT ?`)
          .all(...values, limit)
          .map(approvalTable.from)
      },
      open: () =>
        sql("SELECT * FROM approvals WHERE status = 'open' ORDER BY seq").all().map(approvalTable.from),
      withdrawnSince: (group, since) =>
        Number(
          sql(
            "SELECT count(*) AS count FROM approvals WHERE group_folder = ? AND status = 'withdrawn' AND created_at > ?",
          ).get(group, since)?.count,
        ),
      ruleFor: (group, digest) =>
        ruleTable.maybe(
          sql('SELECT * FROM approval_rules WHERE group_folder = ? AND digest = ?').get(group, digest),
        ),
      rules: group => {
        const { text, values } = where({ 'group_folder = ?': group })
        return sql(`SELECT * FROM approval_rules ${text} ORDER BY id`)
          .all(...values)
          .map(ruleTable.from)
      },
    },
    within: {
      insertApproval: row => void sql(approvalTable.insert).run(...approvalTable.values(row)),
      closeApproval: (seq, ending) => {
        const { text, values } = approvalTable.set(ending)
        return (
          sql(`UPDATE approvals SET ${text} WHERE seq = ? AND status = 'open'`).run(...values, seq)
            .changes === 1
        )
      },
      insertRule(rule) {
        sql(`${ruleTable.insert} ON CONFLICT (group_folder, digest) DO NOTHING`).run(
          ...ruleTable.values(rule),
        )
        const row = sql('SELECT id FROM approval_rules WHERE group_folder = ? AND digest = ?').get(
          rule.group,
          rule.digest,
        )
        return Number(row?.id)
      },
      deleteRule: id => ruleTable.maybe(sql('DELETE FROM approval_rules WHERE id = ? RETURNING *').get(id)),
      hear: receive,
    },
    forgetGroup(folder) {
      sql('DELETE FROM approval_rules WHERE group_folder = ?').run(folder)
      sql("UPDATE approvals SET status = 'withdrawn' WHERE group_folder = ? AND status = 'open'").run(folder)
    },
    prune: () => pruneCards({ sql }, 'approvals'),
  }
}
