import type { CommandAnswer } from '@hatchway/host/api'

export type Decision = 'ok' | 'refused' | 'open'

/** What the list shows of a command, and no more: ten thousand of them are kept in memory. */
export interface Row {
  seq: number
  receivedAt: string
  group: string
  type: string
  decision: Decision
  /** why it was refused */
  code: string
  message: string
  file: string
  requestId: string
  tookUs: number
  repeated: boolean
}

export const decisionOf = ({ outcome }: Pick<CommandAnswer, 'outcome'>): Decision =>
  outcome === null ? 'open' : outcome.ok ? 'ok' : 'refused'

const longest = 1000

/** Copied through a buffer, because a slice of a string keeps the whole string in memory. */
const bounded = (text: string) =>
  text.length <= longest ? text : `${Buffer.from(text.slice(0, longest)).toString()}…`

export function rowOf(command: CommandAnswer): Row {
  const { outcome } = command
  return {
    seq: command.seq,
    receivedAt: command.received_at,
    group: command.group,
    type: bounded(command.type ?? '?'),
    decision: decisionOf(command),
    code: outcome?.ok === false ? outcome.error.code : '',
    message: outcome?.ok === false ? bounded(outcome.error.message) : '',
    file: command.directory === undefined ? command.file : `${command.directory}/${command.file}`,
    requestId: command.request_id ?? '',
    tookUs: command.took_us,
    repeated: command.repeated ?? false,
  }
}
