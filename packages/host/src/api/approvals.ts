import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { operator } from '../chat/approvals/approvers.ts'
import { cardOf, findApproval } from '../chat/approvals/card.ts'
import { revokeRule } from '../chat/approvals/rules.ts'
import type { Approvals } from '../chat/approvals/types.ts'
import type { Config } from '../config.ts'
import { isoOf } from '../store/entities/instant.ts'
import type { ApprovalRow } from '../store/types.ts'
import { approvalRuleAnswer, approvalRulesAnswer, rule } from './answers.ts'
import {
  approvalsAnswer,
  decisionRequest,
  type ListedApprovalAnswer,
  type WholeApprovalAnswer,
  wholeApprovalAnswer,
} from './chat-answers.ts'
import { ApiError } from './failure.ts'
import type { HostContext } from './host.ts'
import { flag, present, whole } from './requests.ts'
import { notFound, type Route, routesOf, unavailable } from './route.ts'

const route = routesOf<HostContext>('approvals')

const approvalsQuery = z.object({
  group: folderSchema.optional(),
  all: flag.optional(),
  limit: whole(1, 1000).optional(),
})
const byId = z.object({ id: z.string().min(1).max(1000) })

/** What agents are not to do without a person: to be seen, decided, and, where it was allowed always, taken back. */
export const approvalRoutes: readonly Route<HostContext>[] = [
  route.get('/approvals', {
    summary: 'What waits for a person’s decision, or was decided, oldest first',
    role: 'viewer',
    query: approvalsQuery,
    answer: approvalsAnswer,
    handle: ({ host: { store, config } }, { query: { group, all = false, limit = 100 } }) =>
      store.approvals
        .list({ ...present({ group }), open: !all, limit })
        .toReversed()
        .map(row => listedOf(config, row)),
  }),
  route.get('/approvals/:id', {
    summary: 'One of them with all that is in it; by its id, or the code while it waits',
    role: 'viewer',
    params: byId,
    answer: wholeApprovalAnswer,
    handle({ host: { store, config, chats } }, { params }) {
      const row = findApproval(store.approvals, params.id)
      if (!row) throw notFound('No approval with this id or code.')
      return wholeOf(config, row, chats?.approvals)
    },
  }),
  route.post('/approvals/:id', {
    summary: 'Decide it',
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
  route.get('/approval-rules', {
    summary: 'What people allowed always',
    role: 'viewer',
    query: z.object({ group: folderSchema.optional() }),
    answer: approvalRulesAnswer,
    handle: ({ host }, { query }) => host.store.approvals.rules(query.group).map(rule.of),
  }),
  route.delete('/approval-rules/:id', {
    summary: 'Take back what was allowed always',
    role: 'admin',
    params: z.object({ id: whole(1, Number.MAX_SAFE_INTEGER) }),
    answer: approvalRuleAnswer,
    async handle({ host: { store, changes } }, { params }) {
      const revoked = await revokeRule(store, params.id, Date.now())
      if ('code' in revoked) throw new ApiError(revoked)
      changes.note('approvals')
      return rule.of(revoked)
    },
  }),
]

const listedOf = (config: Pick<Config, 'groups'>, row: ApprovalRow): ListedApprovalAnswer => ({
  ...cardOf(config, row),
  group: row.group,
  jid: row.jid,
  created_at: isoOf(row.createdAt),
  closed_at: row.closedAt === null ? null : isoOf(row.closedAt),
})

/** With all that is in it: whoever allows something always sees exactly what. */
export const wholeOf = (
  config: Pick<Config, 'groups'>,
  row: ApprovalRow,
  approvals: Pick<Approvals, 'wholeOf'> | undefined,
): WholeApprovalAnswer => ({ ...listedOf(config, row), whole: approvals?.wholeOf(row) ?? null })
