import type { Command } from '@hatchway/host/api-types'

/** The commands a page has, newest first. Each is there once, as it was last seen. */
export type Decision = 'done' | 'refused' | 'open'

export interface TrafficFilter {
  group?: string | undefined
  type?: string | undefined
  decision?: string | undefined
}

export const decisionOf = ({ outcome }: Pick<Command, 'outcome'>): Decision =>
  outcome === null ? 'open' : outcome.ok ? 'done' : 'refused'

export const fits = (command: Command, { group, type, decision }: TrafficFilter): boolean =>
  (group === undefined || command.group === group) &&
  (type === undefined || command.type === type) &&
  (decision === undefined || decisionOf(command) === decision)

/** No more than these are kept: a page that stays open for a day has a limit as well. */
export const keptAtMost = 20_000

export function merged(known: readonly Command[], more: readonly Command[]): readonly Command[] {
  if (more.length === 0) return known
  const newest = known[0]?.seq ?? -1
  const fresh = more.toSorted((a, b) => b.seq - a.seq)
  // Mostly they are all newer than what is there.
  const isAhead = (fresh.at(-1)?.seq ?? 0) > newest
  if (isAhead && new Set(fresh.map(({ seq }) => seq)).size === fresh.length) {
    return [...fresh, ...known].slice(0, keptAtMost)
  }
  const all = new Map(known.map(command => [command.seq, command]))
  for (const command of more) all.set(command.seq, { ...all.get(command.seq), ...command })
  return [...all.values()].toSorted((a, b) => b.seq - a.seq).slice(0, keptAtMost)
}
