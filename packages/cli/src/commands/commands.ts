import type { CommandAnswer } from '@hatchway/host/api'
import { call, family, list } from '../command.ts'
import { milliseconds, timeColumn } from '../format.ts'
import { group, limit, parsed, positive, required } from '../inputs.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { commandFilter, okOf } from '../tail/options.ts'
import { decisionOf, rowOf } from '../tail/row.ts'

export const columns: Column<CommandAnswer>[] = [
  { title: 'SEQ', value: command => String(command.seq), right: true },
  timeColumn('RECEIVED', command => command.received_at),
  { title: 'GROUP', value: command => command.group, flexible: true },
  { title: 'TYPE', value: command => command.type ?? '?', flexible: true },
  { title: 'DECISION', value: decisionInWords, flexible: true },
  { title: 'TOOK', value: command => milliseconds(command.took_us), right: true },
  {
    title: 'REASON',
    value: ({ outcome }) => (outcome?.ok === false ? outcome.error.message : '-'),
    flexible: true,
  },
]

function decisionInWords(command: CommandAnswer): string {
  const { outcome, repeated } = command
  const decision = outcome?.ok === false ? `refused ${outcome.error.code}` : decisionOf(command)
  return repeated ? `${decision}, repeated` : decision
}

export default family('commands', 'inspect commands of agents; `tail` shows them live', [
  list('list', 'list the newest matching commands, oldest first', {
    example: '--group family --decision refused',
    isDefault: true,
    input: {
      group,
      ...commandFilter,
      after: parsed('seq', 'only later ones', positive),
      before: parsed('seq', 'only earlier ones', positive),
      limit: limit(100),
    },
    rows: (client, api, { group, type, decision, after, before, limit }) =>
      client.get(
        url`/commands?${{ group, type, ok: okOf(decision), after, before, limit }}`,
        api.commandsAnswer,
      ),
    columns,
    empty: 'No matching commands.',
  }),
  call('show', 'show a command with its file, steps, receipt and audit entries', {
    example: '17',
    input: { seq: required('its number, from commands list') },
    call: (client, api, { seq }) => client.get(url`/commands/${seq}`, api.wholeCommandAnswer),
    async print(command) {
      const { commandDetails } = await import('../tail/details.ts')
      const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
      return commandDetails(rowOf(command), command, width).join('\n')
    },
  }),
])
