import type { Gate, Taint } from '../base/taint.ts'
import type { TrustLabels } from './labels.ts'

/**
 * What an action could do with what the agent's context has seen.
 *
 *   local       it stays within the group, and can be undone or done again
 *   sink        what goes into it can be seen outside
 *   dangerous   it changes what cannot be changed back, or runs what nobody has read
 *   both        it does both
 */
export type Reach = 'local' | 'sink' | 'dangerous' | 'both'

export type Seen = 'clean' | 'corrupted' | 'secret' | 'both'

/**
 * The one table. Of three things, text that strangers wrote, secrets, and a way out, an agent may have two: with all
 * three somebody who wrote the text can have the secrets sent to them (the lethal trifecta, the rule of two). A person
 * decides where the third comes in; where it is only likely to, somebody looks first.
 */
export const gates: Readonly<Record<Seen, Readonly<Record<Reach, Gate>>>> = {
  clean: { local: 'allow', sink: 'allow', dangerous: 'allow', both: 'allow' },
  corrupted: { local: 'allow', sink: 'inspect', dangerous: 'inspect', both: 'ask' },
  secret: { local: 'allow', sink: 'inspect', dangerous: 'allow', both: 'ask' },
  both: { local: 'allow', sink: 'ask', dangerous: 'ask', both: 'ask' },
}

export const seenIn = ({ corrupted, secret }: Taint): Seen =>
  corrupted ? (secret ? 'both' : 'corrupted') : secret ? 'secret' : 'clean'

/** Whether it is done at once, whatever was read: nothing is searched, and nobody is asked. */
export const isNeverHeld = (reach: Reach): boolean =>
  Object.values(gates).every(row => row[reach] === 'allow')

const reachOf = (sink: boolean, dangerous: boolean): Reach =>
  sink ? (dangerous ? 'both' : 'sink') : dangerous ? 'dangerous' : 'local'

/** What is not known counts as the worst (promise 9). */
const may = (label: 'yes' | 'no' | 'forbidden' | undefined): boolean => label !== 'no'

export const reachOfLabels = ({ public_sink, dangerous_writes }: TrustLabels): Reach =>
  reachOf(may(public_sink), may(dangerous_writes))

/** What reading from it does to the context. */
export const taintOfLabels = ({ public_source, secret_data }: TrustLabels): Taint => ({
  corrupted: may(public_source),
  secret: may(secret_data),
})

/** Any label that says so rules the tool out, whatever was read. */
export const forbiddenBy = (labels: TrustLabels): string | undefined =>
  Object.entries(labels).find(([, value]) => value === 'forbidden')?.[0]

const strictness = { no: 0, yes: 1, forbidden: 2 } as const

/** What somebody else says of a tool can make it stricter, and never looser. */
export function tightened(labels: TrustLabels, override: TrustLabels = {}): TrustLabels {
  const names = ['public_source', 'secret_data', 'public_sink', 'dangerous_writes'] as const
  const result: TrustLabels = { ...labels }
  for (const name of names) {
    const said = override[name]
    const known = labels[name]
    // Unknown is as strict as yes: only `forbidden` is stricter.
    if (said !== undefined && strictness[said] > strictness[known ?? 'yes']) result[name] = said
  }
  return result
}
