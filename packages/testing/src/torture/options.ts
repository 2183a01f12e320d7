import { parseArgs } from 'node:util'

/** What is tortured, in this order. */
export const parts = [
  'pipeline',
  'system',
  'disk-full',
  'slow-disk',
  'clock',
  'locked',
  'engines',
  'deploy',
] as const
export type Part = (typeof parts)[number]

export interface Options {
  seed: number
  /** of the pipeline part */
  kills: number
  /** of the system part; the others have a share of it */
  rounds: number
  durability: 'full' | 'process'
  inject: boolean
  parts: readonly Part[]
  /** only this round of the one part */
  round: number | undefined
  /** says what would be done, and does nothing */
  planOnly: boolean
}

const help = `npm run torture -- [options]

The whole system, killed again and again, with disks that fill up, fail and are slow, clocks that jump, a database
that somebody else has locked, and engines that disappear. Whatever it was asked is written down here, outside of it,
and looked for at the end: nothing may be lost, done twice or left behind.

  --seed N              the same plan again; it is printed at the start
  --only PART[,PART]    some of: ${parts.join(', ')}
  --only PART:ROUND     one round of one part, such as system:7, on an installation of its own
  --plan                prints the rounds of the plan, and does nothing
  --kills 250           of the pipeline part, which is the hatch alone
  --rounds 30           of the system part; the other parts have a share of it
  --durability full     or process: what an accepted command has to survive
  --no-inject           no system calls that fail (they need strace)
  --quick               about two minutes: --kills 12 --rounds 5

A quarter of an hour on two processors. Disks and clocks of its own need root, strace and faketime; what cannot be had is
named in the table. The exit code is 0 only if all is as it has to be.`

export function readOptions(args: readonly string[]): Options | { say: string; code: number } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      kills: { type: 'string' },
      rounds: { type: 'string' },
      only: { type: 'string' },
      durability: { type: 'string', default: 'full' },
      'no-inject': { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      plan: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return { say: help, code: 0 }
  const wrong = (option: string) => ({ say: `${option} makes no sense. See --help.`, code: 64 })
  const seed = Number(values.seed ?? Date.now() % 1_000_000_000)
  const kills = Number(values.kills ?? (values.quick ? 12 : 250))
  const rounds = Number(values.rounds ?? (values.quick ? 5 : 30))
  if (![seed, kills, rounds].every(Number.isSafeInteger) || kills < 0 || rounds < 1)
    return wrong('A number of these')
  const { durability } = values
  if (durability !== 'full' && durability !== 'process') return wrong(`--durability ${durability}`)
  const [names = '', number] = (values.only ?? parts.join(',')).split(':')
  const chosen = parts.filter(part => names.split(',').includes(part))
  if (chosen.length !== names.split(',').length) return wrong(`--only ${values.only}`)
  const round = number === undefined ? undefined : Number(number)
  if (
    round !== undefined &&
    (chosen.length !== 1 || chosen[0] === 'pipeline' || !Number.isSafeInteger(round))
  )
    return wrong(`--only ${values.only}`)
  return {
    seed,
    kills,
    rounds,
    durability,
    inject: !values['no-inject'],
    parts: chosen,
    round,
    planOnly: values.plan,
  }
}
