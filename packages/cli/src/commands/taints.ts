import type { TaintsAnswer } from '@hatchway/host/api'
import { call, family, list } from '../command.ts'
import { when } from '../format.ts'
import { optional, required, withDefault } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

type Taint = TaintsAnswer[number]

const sinceOf = (since: Taint['secret']) => (since ? `${since.by}, ${when(since.at)}` : '-')

const columns: Column<Taint>[] = [
  { title: 'GROUP', value: taint => taint.group, flexible: true },
  { title: 'CONTEXT', value: taint => taint.context, flexible: true },
  { title: 'UNTRUSTED CONTENT', value: taint => sinceOf(taint.corrupted), flexible: true },
  { title: 'SECRETS', value: taint => sinceOf(taint.secret), flexible: true },
]

export default family('taints', 'inspect and clear what counts as read by agents', [
  list('list', 'list contexts with untrusted content or secrets', {
    rows: (client, api) => client.get('/taints', api.taintsAnswer),
    columns,
    empty: 'No context is tainted.',
  }),
  call('clear', 'clear a group’s taint after you have checked its files; `groups wipe` deletes them', {
    example: 'family',
    input: {
      group: required('the group’s folder'),
      context: withDefault(optional('from `taints list`'), 'session'),
    },
    call: (client, api, { group, context }) =>
      client.delete(url`/taints/${group}/${context}`, api.clearedTaintAnswer),
    print: (_, { group, context }) =>
      `The taint of ${visible(group)}, context ${visible(context)}, is cleared.`,
  }),
])
