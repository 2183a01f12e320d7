import type { CommandAnswer } from '@hatchway/host/api'

export type Decision = 'ok' | 'refused' | 'open'

/** What the list shows of a command, and no more: ten thousand of them are kept. */
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

/** By way of bytes, because a part of a string keeps all of it in memory. */
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

const two = (value: number) => String(value).padStart(2, '0')

/** Local time. */
export function clock(iso: string): string {
  const time = new Date(iso)
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, '0')}`
}

export const tookOf = (us: number): string => `${(us / 1000).toFixed(1)} ms`
