import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { Approvals } from '../chat/approvals/approvals.ts'
import { operator } from '../chat/approvals/approvers.ts'
import { cardOf, findApproval } from '../chat/approvals/card.ts'
import { revokeRule } from '../chat/approvals/rules.ts'
import type { Config } from '../config.ts'
import type { ApprovalRow, RuleRow } from '../store/approvals.ts'
import {
  decisionRequest,
  type ListedApprovalAnswer,
  listedApprovalAnswer,
  type WholeApprovalAnswer,
  wholeApprovalAnswer,
} from './chat-answers.ts'
import { ApiError } from './failure.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { flag, present, whole } from './requests.ts'
import { iso, notFound, type Route, unavailable } from './route.ts'

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
const byId = z.object({ id: z.string().min(1).max(1000) })
const tag = 'approvals'

/** What agents are not to do without a person: to be seen, decided, and, where it was allowed always, taken back. */
export const approvalRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/approvals',
    summary: 'What waits for a person’s decision, or was decided, oldest first',
    tag,
    role: 'viewer',
    query: approvalsQuery,
    answer: approvalsAnswer,
    handle: ({ host: { store, config } }, { query: { group, all = false, limit = 100 } }) =>
      store.approvals
        .list({ ...present({ group }), open: !all, limit })
        .toReversed()
        .map(row => listedOf(config, row)),
  }),
  route({
    method: 'get',
    path: '/approvals/:id',
    summary: 'One of them with all that is in it; by its id, or the code while it waits',
    tag,
    role: 'viewer',
    params: byId,
    answer: wholeApprovalAnswer,
    handle({ host: { store, config, chats } }, { params }) {
      const row = findApproval(store.approvals, params.id)
      if (!row) throw notFound('Nothing has this id, and nothing that waits has this code.')
      return wholeOf(config, row, chats?.approvals)
    },
  }),
  route({
    method: 'post',
    path: '/approvals/:id',
    summary: 'Decide it',
    tag,
    role: 'approver',
    params: byId,
    body: decisionRequest,
    answer: wholeApprovalAnswer,
    handle({ host: { store, config, chats, changes } }, { params, body, caller }) {
      const approvals = chats?.approvals
      if (!approvals) throw unavailable('Only a running daemon does it. Start one.')
      const row = findApproval(store.approvals, params.id)
      // Whoever is at the command line may decide anything; others what is the operator's to decide.
      const settled =
        row && !caller.isAtHost
          ? approvals.choose({ jid: row.jid, folder: row.group }, cardOf(config, row).id, body, {
              ...operator,
              senderName: caller.name,
            })
          : approvals.decide(params.id, body)
      if (!settled.ok) throw new ApiError(settled.error)
      changes.note('approvals')
      return wholeOf(config, settled.approval, approvals)
    },
  }),
  route({
    method: 'get',
    path: '/approval-rules',
    summary: 'What people allowed always',
    tag,
    role: 'viewer',
    query: z.object({ group: folderSchema.optional() }),
    answer: approvalRulesAnswer,
    handle: ({ host }, { query }) => host.store.approvals.rules(query.group).map(ruleOf),
  }),
  route({
    method: 'delete',
    path: '/approval-rules/:id',
    summary: 'Take back what was allowed always',
    tag,
    role: 'admin',
    params: z.object({ id: whole(1, Number.MAX_SAFE_INTEGER) }),
    answer: approvalRuleAnswer,
    async handle({ host: { store, changes } }, { params }) {
      const revoked = await revokeRule(store, params.id, Date.now())
      if ('code' in revoked) throw new ApiError(revoked)
      changes.note('approvals')
      return ruleOf(revoked)
    },
  }),
]

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
