import { z } from 'zod'
import type { Taint } from '../base/taint.ts'
import type { NewIncoming } from './agent-types.ts'
import { cardFromRow, cardSchema, pruneCards } from './cards.ts'
import type { Connection } from './connection.ts'
import { parsed, type Row } from './rows.ts'

/**
 * open        waits for a person
 * allowed     it happened, or was tried, because somebody said so
 * denied      it does not happen, because somebody said so
 * expired     nobody decided in time
 * withdrawn   nobody wants it any longer
 */
const statuses = ['open', 'allowed', 'denied', 'expired', 'withdrawn'] as const
export type ApprovalStatus = (typeof statuses)[number]

const shownSchema = z.object({
  fields: z.array(
    z.object({
      name: z.string(),
      /** quoted and escaped where it is a text */
      text: z.string(),
      /** so many characters of it are left out */
      more: z.number().optional(),
      /** what a reader could overlook */
      note: z.string().optional(),
    }),
  ),
  /** so many characters are left out */
  more: z.number(),
})
/** What is in an action, fit to be shown. */
export type Shown = z.infer<typeof shownSchema>

/** What a person was asked to allow. */
export interface ApprovalRow extends z.infer<typeof cardSchema> {
  code: string
  /** `always`: whether it may be allowed from now on, too */
  action: { name: string; summary: string; payload: Shown; always: boolean }
  taint: Taint
  why: string
  status: ApprovalStatus
  /** a name to show */
  decidedBy: string | null
  /** what they said along with it */
  words: string | null
  /** made by "allow always" */
  rule: number | null
}
export type Ending = Pick<ApprovalRow, 'status' | 'decidedBy' | 'words' | 'rule' | 'closedAt'>

/** A person's word that something may always happen: this group, this action, with exactly this. */
export interface RuleRow {
  id: number
  group: string
  name: string
  digest: string
  summary: string
  madeBy: string
  createdAt: number
}

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
  const one = (row: Row | undefined) => row && approvalFromRow(row)
  const rule = (row: Row | undefined) => row && ruleFromRow(row)
  return {
    store: {
      approval: seq => one(sql('SELECT * FROM approvals WHERE seq = ?').get(seq)),
      byMessage: id => one(sql('SELECT * FROM approvals WHERE message_id = ?').get(id)),
      byCode: (jid, code) => one(sql('SELECT * FROM approvals WHERE jid = ? AND code = ?').get(jid, code)),
      list: ({ group, open = false, limit }) =>
        sql(
          `SELECT * FROM approvals WHERE (:group IS NULL OR group_folder = :group)
           AND (:open = 0 OR status = 'open') ORDER BY seq DESC LIMIT :limit`,
        )
          .all({ group: group ?? null, open: Number(open), limit })
          .map(approvalFromRow),
      open: () =>
        sql("SELECT * FROM approvals WHERE status = 'open' ORDER BY seq").all().map(approvalFromRow),
      withdrawnSince: (group, since) =>
        Number(
          sql(
            "SELECT count(*) AS count FROM approvals WHERE group_folder = ? AND status = 'withdrawn' AND created_at > ?",
          ).get(group, since)?.count,
        ),
      ruleFor: (group, digest) =>
        rule(sql('SELECT * FROM approval_rules WHERE group_folder = ? AND digest = ?').get(group, digest)),
      rules: group =>
        sql('SELECT * FROM approval_rules WHERE (:group IS NULL OR group_folder = :group) ORDER BY id')
          .all({ group: group ?? null })
          .map(ruleFromRow),
    },
    within: {
      insertApproval: row =>
        void sql('INSERT INTO approvals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
          row.seq,
          row.group,
          row.jid,
          row.messageId,
          row.code,
          JSON.stringify(row.action),
          JSON.stringify(row.taint),
          row.why,
          row.status,
          row.decidedBy,
          row.words,
          row.rule,
          row.createdAt,
          row.expiresAt,
          row.closedAt,
        ),
      closeApproval: (seq, { status, decidedBy, words, rule, closedAt }) =>
        sql(
          `UPDATE approvals SET status = ?, decided_by = ?, words = ?, rule = ?, closed_at = ?
           WHERE seq = ? AND status = 'open'`,
        ).run(status, decidedBy, words, rule, closedAt, seq).changes === 1,
      insertRule({ group, name, digest, summary, madeBy, createdAt }) {
        sql(
          `INSERT INTO approval_rules (group_folder, name, digest, summary, made_by, created_at)
           VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (group_folder, digest) DO NOTHING`,
        ).run(group, name, digest, summary, madeBy, createdAt)
        const row = sql('SELECT id FROM approval_rules WHERE group_folder = ? AND digest = ?').get(
          group,
          digest,
        )
        return Number(row?.id)
      },
      deleteRule: id => rule(sql('DELETE FROM approval_rules WHERE id = ? RETURNING *').get(id)),
      hear: receive,
    },
    forgetGroup(folder) {
      sql('DELETE FROM approval_rules WHERE group_folder = ?').run(folder)
      sql("UPDATE approvals SET status = 'withdrawn' WHERE group_folder = ? AND status = 'open'").run(folder)
    },
    prune: () => pruneCards({ sql }, 'approvals'),
  }
}

const approvalSchema = cardSchema.extend({
  code: z.string(),
  action: z.object({
    name: z.string(),
    summary: z.string(),
    payload: shownSchema,
    // Those of earlier versions do not say.
    always: z.boolean().default(false),
  }),
  taint: z.object({ corrupted: z.boolean(), secret: z.boolean() }),
  why: z.string(),
  status: z.enum(statuses),
  decidedBy: z.string().nullable(),
  words: z.string().nullable(),
  rule: z.number().nullable(),
})

const approvalFromRow = (row: Row): ApprovalRow =>
  approvalSchema.parse({
    ...cardFromRow(row),
    action: parsed(row.action),
    taint: parsed(row.taint),
    decidedBy: row.decided_by,
  })

const ruleSchema = z.object({
  id: z.number(),
  group: z.string(),
  name: z.string(),
  digest: z.string(),
  summary: z.string(),
  madeBy: z.string(),
  createdAt: z.number(),
})

const ruleFromRow = (row: Row): RuleRow =>
  ruleSchema.parse({ ...row, group: row.group_folder, madeBy: row.made_by, createdAt: row.created_at })
