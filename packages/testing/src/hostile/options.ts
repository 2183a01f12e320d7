import { parseArgs } from 'node:util'

const sandboxNames = ['docker', 'bubblewrap'] as const
export type SandboxChoice = (typeof sandboxNames)[number]

/** Each wave is one turn of the hostile agent; what is in it goes on at the same time. */
export const waves: readonly (readonly string[])[] = [
  ['decisions'],
  ['fuzz', 'documents'],
  ['text', 'replays'],
  ['forgeries', 'answers'],
  ['events'],
  ['files'],
  ['races'],
  ['escape'],
  ['signals'],
  ['model'],
  ['memory'],
  ['processes'],
  ['bytes'],
  ['inodes'],
  ['descriptors', 'watches'],
  ['output'],
  ['flood'],
  ['decisions', 'fuzz', 'files', 'races', 'forgeries', 'escape', 'inodes', 'model'],
]
const attackNames = [...new Set(waves.flat())]

export interface HostileOptions {
  seconds: number
  seed: number
  sandboxes: readonly SandboxChoice[]
  waves: typeof waves
}

const usage = `npm run hostile -- [--minutes 4] [--seed N] [--sandbox docker,bubblewrap] [--only ATTACK,…]

A program that has exactly what a sandboxed agent has tries everything against a running daemon, in each of the
sandboxes, and is watched from outside.

  --minutes   of attack, all sandboxes together; every attack is made at least once, however long that takes
  --seed      the same choices again; when they meet the host is chance all the same
  --sandbox   only these
  --only      only these attacks: ${attackNames.join(', ')}`

/** A text: what to print instead of running. */
export function readOptions(args: readonly string[]): HostileOptions | { text: string; code: number } {
  let values: Record<'minutes' | 'seed' | 'sandbox' | 'only', string | undefined> & {
    help?: boolean | undefined
  }
  try {
    const read = parseArgs({
      args: [...args],
      options: {
        minutes: { type: 'string' },
        seed: { type: 'string' },
        sandbox: { type: 'string' },
        only: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
    values = {
      minutes: read.minutes,
      seed: read.seed,
      sandbox: read.sandbox,
      only: read.only,
      help: read.help,
    }
  } catch (error) {
    return { text: `${error instanceof Error ? error.message : error}\n\n${usage}`, code: 64 }
  }
  if (values.help) return { text: usage, code: 0 }
  const minutes = Number(values.minutes ?? 4)
  const seed = Number(values.seed ?? Date.now() % 1_000_000_000)
  const asked = values.sandbox?.split(',') ?? sandboxNames
  const only = values.only?.split(',')
  const strange = [
    ...asked.filter(name => !sandboxNames.some(known => known === name)),
    ...(only ?? []).filter(name => !attackNames.includes(name)),
  ]
  if (!(minutes >= 0) || !Number.isInteger(seed) || strange.length > 0)
    return { text: `That makes no sense: ${[...strange, ...args].join(' ')}\n\n${usage}`, code: 64 }
  const chosen = only === undefined ? waves : only.map(name => [name])
  return {
    seconds: minutes * 60,
    seed,
    sandboxes: sandboxNames.filter(name => asked.includes(name)),
    waves: chosen,
  }
}
