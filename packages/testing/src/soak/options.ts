import { parseArgs } from 'node:util'

export interface SoakOptions {
  minutes: number
  groups: number
  /** commands in a second, of all groups together */
  rate: number
  /** sessions that may run at the same time */
  sessions: number
  /** messages of people to agents in a second */
  chats: number
  seed: number
  /** only these activities of agents; empty: all of them */
  only: string[]
  /** how full the journal is at the start */
  journal: number
  /** where all samples are written; left out: nowhere */
  json?: string | undefined
}

const help = `npm run soak -- [options]

Mixed traffic of many groups, with sessions that come and go, against a daemon as people start it; at the end memory,
handles, files and latency of the last quarter are compared with those of the second, and everything sent is accounted for.

  --minutes N    how long (60)
  --groups N     how many groups (500)
  --rate N       commands in a second, of all together (40)
  --chats N      messages of people to agents in a second (0.5)
  --sessions N   sessions that may run at the same time (6)
  --seed N       the same traffic again; by chance if left out
  --only A,B     only these activities of agents, to find out which of them it is: message, flat, reaction, twice, halves, file,
                 task, flat-task, due, memory, todo, service, pynchy, shell, approval, question, forbidden, refused,
                 guest, refresh, elsewhere
  --journal N    commands that the journal holds at the start (200000, the fewest that are kept)
  --json FILE    write all samples there
  --help

Ctrl-C ends it early, and what was seen until then is reported. A second Ctrl-C ends it at once.`

/** The least that the journal keeps, whatever the configuration says: a full one neither grows nor shrinks. */
const journalAtLeast = 200_000

/** undefined: only help was asked for, and given. */
export function optionsFrom(args: readonly string[]): SoakOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '60' },
      groups: { type: 'string', default: '500' },
      rate: { type: 'string', default: '40' },
      chats: { type: 'string', default: '0.5' },
      sessions: { type: 'string', default: '6' },
      journal: { type: 'string', default: String(journalAtLeast) },
      seed: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(help)
    return undefined
  }
  const number = (name: 'minutes' | 'groups' | 'rate' | 'chats' | 'sessions' | 'journal', least: number) => {
    const value = Number(values[name])
    if (Number.isFinite(value) && value >= least) return value
    throw new Error(`--${name}: must be a number of at least ${least}`)
  }
  return {
    minutes: number('minutes', 0.05),
    groups: number('groups', 12),
    rate: number('rate', 0.1),
    chats: number('chats', 0),
    sessions: number('sessions', 1),
    journal: number('journal', 0),
    seed: Number(values.seed ?? Date.now() % 1_000_000_000),
    only: values.only?.split(',') ?? [],
    json: values.json,
  }
}
