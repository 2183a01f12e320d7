import { folderSchema, refusal } from '@hatchway/protocol'
import type { Hono } from 'hono'
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { Approvals } from '../guard/approvals/approvals.ts'
import { cardOf, findApproval } from '../guard/approvals/card.ts'
import { revokeRule } from '../guard/approvals/rules.ts'
import type { ApprovalRow, RuleRow } from '../store/approvals.ts'
import type { Host } from '../types.ts'
import {
  decisionRequest,
  type ListedApprovalAnswer,
  listedApprovalAnswer,
  type WholeApprovalAnswer,
} from './chat-answers.ts'
import { ApiError } from './failure.ts'
import { bodyOf, check, flag, present, whole } from './requests.ts'

export const approvalsAnswer = z.array(listedApprovalAnswer)

export const approvalRuleAnswer = z.object({
  id: z.int(),
  group: z.string(),
  name: z.string().describe('the command or the tool'),
  summary: z.string(),
  digest: z.string().describe('of the name and of all that was in it: nothing else is allowed'),
  made_by: z.string(),
  created_at: z.iso.datetime(),
})
export const approvalRulesAnswer = z.array(approvalRuleAnswer)
export type ApprovalRuleAnswer = z.infer<typeof approvalRuleAnswer>

const approvalsQuery = z.object({
  group: folderSchema.optional(),
  all: flag.optional(),
  limit: whole(1, 1000).optional(),
})
const rulesQuery = z.object({ group: folderSchema.optional() })
const ruleId = whole(1, Number.MAX_SAFE_INTEGER)

/** What agents are not to do without a person: to be seen, decided, and, where it was allowed always, taken back. */
export function addApprovalRoutes(app: Hono, host: Pick<Host, 'store' | 'config' | 'chats'>): void {
  const { store, config } = host
  const whole = (row: ApprovalRow) => wholeOf(config, row, host.chats?.approvals)

  app.get('/approvals', c => {
    const { group, all = false, limit = 100 } = check(approvalsQuery, c.req.query())
    const rows = store.approvals.list({ ...present({ group }), open: !all, limit })
    return c.json(rows.toReversed().map(row => listedOf(config, row)))
  })
  app.get('/approvals/:id', c => {
    const row = findApproval(store.approvals, c.req.param('id'))
    if (!row) throw new ApiError(nothing)
    return c.json(whole(row))
  })
  app.post('/approvals/:id', async c => {
    const spoken = check(decisionRequest, await bodyOf(c.req.raw))
    const approvals = host.chats?.approvals
    if (!approvals) throw new ApiError(refusal('unavailable', 'Only a running daemon does it. Start one.'))
    const settled = approvals.decide(c.req.param('id'), spoken)
    if (!settled.ok) throw new ApiError(settled.error)
    return c.json(whole(settled.approval))
  })

  app.get('/approval-rules', c => {
    const { group } = check(rulesQuery, c.req.query())
    return c.json(store.approvals.rules(group).map(ruleOf))
  })
  app.delete('/approval-rules/:id', async c => {
    const revoked = await revokeRule(store, check(ruleId, c.req.param('id'), 'id'), Date.now())
    if ('code' in revoked) throw new ApiError(revoked)
    return c.json(ruleOf(revoked))
  })
}

const nothing = refusal('not_found', 'Nothing has this id, and nothing that waits has this code.')

const iso = (ms: number) => new Date(ms).toISOString()

const listedOf = (config: Pick<Config, 'groups'>, row: ApprovalRow): ListedApprovalAnswer => ({
  ...cardOf(config, row),
  group: row.group,
  jid: row.jid,
  created_at: iso(row.createdAt),
  closed_at: row.closedAt === null ? null : iso(row.closedAt),
})

/** With all that is in it: whoever allows something always sees exactly what. */
export const wholeOf = (
  config: Pick<Config, 'groups'>,
  row: ApprovalRow,
  approvals: Pick<Approvals, 'wholeOf'> | undefined,
): WholeApprovalAnswer => ({ ...listedOf(config, row), whole: approvals?.wholeOf(row) ?? null })

const ruleOf = ({ madeBy, createdAt, ...rule }: RuleRow): ApprovalRuleAnswer => ({
  ...rule,
  made_by: madeBy,
  created_at: iso(createdAt),
})
