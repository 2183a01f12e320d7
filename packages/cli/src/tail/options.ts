import {
  type CommonOptions,
  choice,
  flag,
  group,
  parsed,
  positive,
  text,
  type ValuesOf,
  withShort,
} from '../inputs.ts'
import type { Decision } from './row.ts'

/** Which commands are wanted; also for `commands list`. */
export const commandFilter = {
  type: text('type', 'only commands of this type'),
  decision: choice('decision', 'only this decision; open: the answer follows', ['ok', 'refused', 'open']),
}

const okValues = { ok: '1', refused: '0', open: 'open' } as const

/** The API's parameter for a decision. */
export const okOf = (decision: Decision | undefined): string | undefined =>
  decision === undefined ? undefined : okValues[decision]

export const tailInputs = {
  group,
  ...commandFilter,
  lines: withShort(
    'n',
    parsed('number', 'how many past commands to start with (default: 20; full screen: 1000)', positive),
  ),
  plain: flag('print lines also on a terminal'),
}
export type TailOptions = ValuesOf<typeof tailInputs> & CommonOptions
