import type {
  ApprovalRuleAnswer,
  Client,
  ListedApprovalAnswer,
  WholeApprovalAnswer,
} from '@hatchway/host/api'
import { approvalEnding } from '../chat/cards.ts'
import { call, family, list } from '../command.ts'
import { facts } from '../facts.ts'
import { usageError } from '../failure.ts'
import { timeColumn, when } from '../format.ts'
import { flag, group, limit, required, several } from '../inputs.ts'
import { type Api, url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<ListedApprovalAnswer>[] = [
  { title: 'ID', value: approval => approval.id, right: true },
  { title: 'GROUP', value: approval => approval.group, flexible: true },
  { title: 'STATUS', value: approval => approval.status },
  { title: 'ACTION', value: approval => approval.action.summary, flexible: true },
  { title: 'REASON', value: approval => approval.why, flexible: true },
  timeColumn('EXPIRES', approval => approval.expires_at),
  { title: 'DECIDED BY', value: approval => approval.decided_by ?? '-', flexible: true },
]

const ruleColumns: Column<ApprovalRuleAnswer>[] = [
  { title: 'ID', value: rule => String(rule.id), right: true },
  { title: 'GROUP', value: rule => rule.group, flexible: true },
  { title: 'COMMAND', value: rule => rule.name, flexible: true },
  { title: 'ALWAYS ALLOWED', value: rule => rule.summary, flexible: true },
  { title: 'SCOPE', value: rule => (rule.scope === 'tool' ? 'any content' : 'this content') },
  { title: 'CONTENT HASH', value: rule => (rule.scope === 'tool' ? '-' : rule.digest.slice(0, 12)) },
  { title: 'CREATED BY', value: rule => rule.made_by, flexible: true },
  timeColumn('CREATED', rule => rule.created_at),
]

const id = required('its id or its code')

const decide = (client: Client, api: Api, approvalId: string, decision: object) =>
  client.post(url`/approvals/${approvalId}`, decision, api.wholeApprovalAnswer)

const decided = (approval: WholeApprovalAnswer) =>
  `${approvalEnding(approval)} (${visible(approval.group)}: ${visible(approval.action.summary)})`

function details(approval: WholeApprovalAnswer): string[] {
  const ending = approvalEnding(approval)
  const { fields, more } = approval.whole ?? approval.action.payload
  return [
    ...facts([
      ['id', approval.id],
      ['group', approval.group],
      ['chat', approval.jid],
      ['command', approval.action.name],
      ['action', approval.action.summary],
      ['reason', approval.why],
      ['asked', when(approval.created_at)],
      ['expires', when(approval.expires_at)],
      ['status', approval.status],
    ]),
    ...(ending === undefined ? [] : [ending]),
    ...fields.flatMap(({ name, text, note }) => [
      `│ ${visible(name)}: ${visible(text)}`,
      ...(note === undefined ? [] : [`│ ⚠ ${visible(note)}`]),
    ]),
    ...(more > 0 ? [`│ … and ${more} more characters, which were not kept`] : []),
  ]
}

export default family('approvals', 'approve or deny actions of agents, in any group', [
  list('list', 'list open approvals, oldest first', {
    example: '--all --group family',
    isDefault: true,
    input: { group, all: flag('include decided ones'), limit: limit(100, 1000) },
    rows: (client, api, { group, all, limit }) =>
      client.get(url`/approvals?${{ group, all, limit: Math.min(limit, 1000) }}`, api.approvalsAnswer),
    columns,
    empty: ({ all }) => (all ? 'No approvals yet.' : 'No approvals waiting.'),
  }),
  call('show', 'show an approval with the full content of the action', {
    example: '17',
    input: { id },
    call: (client, api, { id }) => client.get(url`/approvals/${id}`, api.wholeApprovalAnswer),
    print: details,
  }),
  call('allow', 'allow an action', {
    example: '17\n17 --always\n17 --tool',
    input: {
      id,
      always: flag('allow this group exactly this action from now on; see approvals rules'),
      tool: flag('allow this group this tool from now on, whatever it is called with'),
    },
    call(client, api, { id, always, tool }) {
      if (always && tool) throw usageError('Add --always or --tool, not both.')
      return decide(client, api, id, { decision: tool ? 'always_tool' : always ? 'always' : 'allow' })
    },
    print: decided,
  }),
  call('deny', 'deny an action', {
    example: '17\n17 too expensive',
    input: { id, words: several('the reason, which the agent gets') },
    call: (client, api, { id, words }) =>
      decide(client, api, id, { decision: 'deny', words: words.join(' ') }),
    print: decided,
  }),
  list('rules', 'list actions that are always allowed', {
    example: '--group family',
    input: { group },
    rows: (client, api, { group }) => client.get(url`/approval-rules?${{ group }}`, api.approvalRulesAnswer),
    columns: ruleColumns,
    empty: 'No actions are always allowed.',
  }),
  call('revoke', 'remove a rule, so that people are asked again', {
    example: '3',
    input: { rule: required('the id of the rule, from approvals rules') },
    call: (client, api, { rule }) => client.delete(url`/approval-rules/${rule}`, api.approvalRuleAnswer),
    print: rule =>
      `Rule ${rule.id} is removed: ${visible(rule.group)} needs approval again to ${visible(rule.summary)}.`,
  }),
])
