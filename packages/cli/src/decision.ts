import { type Command, Option } from 'commander'
import type { Decision } from './tail/row.ts'

export interface DecisionOptions {
  decision?: Decision
}

const decisions: readonly Decision[] = ['ok', 'refused', 'open']

export const withDecision = (command: Command): Command =>
  command.addOption(
    new Option('--decision <what>', 'only those decided so; open: the answer follows').choices(decisions),
  )

const asked = { ok: '1', refused: '0', open: 'open' } as const

/** As the API asks for it. */
export const okOf = (decision: Decision | undefined): string | undefined =>
  decision === undefined ? undefined : asked[decision]
