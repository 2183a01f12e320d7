import type { FaultStep } from '../../../host/src/base/fault.ts'
import { createRandom, type Random } from '../random.ts'
import { brokenCalls, pipelineSteps } from './faults.ts'
import { type Options, type Part, parts } from './options.ts'

/**
 * What is done to the system in one round. All of it comes from the seed; what the system does meanwhile is its own
 * affair, so a round that is repeated is done again in the same way and need not go the same way.
 */
export type Fault =
  /** ended by force, in the middle of its start or some time after */
  | { kind: 'moment'; isStarting: boolean; ms: number }
  /** ended by force at a step of its own */
  | { kind: 'step'; step: FaultStep; times: number; ms: number }
  /** some of its system calls fail; then it is ended by force */
  | { kind: 'call'; injection: string; when: string; ms: number }
  /** a disk without room, while it runs, while it is killed, or while it starts */
  | { kind: 'full'; during: 'run' | 'kill' | 'start'; fullMs: number; roomMs: number; leftBytes: number }
  /** each sync of the disk takes so long */
  | { kind: 'slow'; syncMs: number; ms: number }
  /** the clock is set, by so many seconds from where it should be, one after the other */
  | { kind: 'jump'; to: readonly Jump[]; isKilled: boolean }
  /** somebody else has a lock on a database */
  | { kind: 'lock'; file: 'database' | 'memories'; how: 'IMMEDIATE' | 'EXCLUSIVE'; ms: number }
  /** what runs agents is gone for a while */
  | {
      kind: 'engine'
      engine: 'bwrap' | 'docker'
      how: 'missing' | 'killed' | 'frozen' | 'restarted'
      ms: number
    }
  /** a new revision, and somebody is killed while it is deployed */
  | {
      kind: 'deploy'
      revision: 'good' | 'broken'
      victim: 'daemon' | 'supervisor' | 'nobody'
      step: FaultStep | undefined
      ms: number
    }

/** Seconds from where the clock should be, or a moment before summer time begins or ends. */
export type Jump = number | 'summer begins' | 'summer ends'

export interface Round {
  part: Part
  number: number
  /** of what is asked meanwhile */
  seed: number
  fault: Fault
}

/** Steps that an installation with sessions, services and approvals gets to. */
const steps: readonly FaultStep[] = [...pipelineSteps, 'copied', 'attached']
const deploySteps: readonly FaultStep[] = ['deploy_stored', 'deploy_handed', 'deploy_restarting', 'deploy_up']
const injections = [...brokenCalls, 'openat:error=EMFILE', 'mkdir:error=ENOSPC']

const second = 1000
const hour = 3600

const choose: Record<Exclude<Part, 'pipeline'>, (random: Random, options: Options) => Fault> = {
  system(random, { inject }) {
    const ms = 500 + random.below(4 * second)
    if (inject && random.chance(0.2)) {
      const when = `${1 + random.below(100)}..${100 + random.below(200)}+${1 + random.below(7)}`
      return { kind: 'call', injection: random.pick(injections), when, ms: ms + 2 * second }
    }
    if (random.chance(0.55))
      return { kind: 'step', step: random.pick(steps), times: 1 + random.below(12), ms: ms + second }
    return { kind: 'moment', isStarting: random.chance(0.25), ms }
  },
  'disk-full': random => ({
    kind: 'full',
    during: random.pick(['run', 'run', 'kill', 'start']),
    fullMs: 500 + random.below(6 * second),
    roomMs: 500 + random.below(2 * second),
    leftBytes: random.pick([0, 0, 4096, 40_960, 200_000]),
  }),
  'slow-disk': random => ({
    kind: 'slow',
    syncMs: 20 + random.below(130),
    ms: 3 * second + random.below(6 * second),
  }),
  clock: random => ({
    kind: 'jump',
    to: Array.from({ length: 1 + random.below(3) }, (): Jump => {
      if (random.chance(0.3)) return random.chance(0.5) ? 'summer begins' : 'summer ends'
      return (random.chance(0.5) ? 1 : -1) * (60 + random.below(30 * hour))
    }),
    isKilled: random.chance(0.4),
  }),
  locked: random => ({
    kind: 'lock',
    file: random.chance(0.5) ? 'database' : 'memories',
    how: random.chance(0.5) ? 'IMMEDIATE' : 'EXCLUSIVE',
    ms: random.chance(0.6) ? 100 + random.below(4 * second) : 6 * second + random.below(14 * second),
  }),
  engines: random => ({
    kind: 'engine',
    ...(random.chance(0.4)
      ? { engine: 'bwrap', how: 'missing' }
      : { engine: 'docker', how: random.pick(['killed', 'frozen', 'restarted']) }),
    ms: 500 + random.below(6 * second),
  }),
  deploy: random => {
    const victim = random.pick(['daemon', 'daemon', 'supervisor', 'nobody'] as const)
    return {
      kind: 'deploy',
      revision: random.chance(0.7) ? 'good' : 'broken',
      victim,
      step: victim === 'daemon' && random.chance(0.6) ? random.pick(deploySteps) : undefined,
      ms: random.below(3 * second),
    }
  },
}

/** How many rounds a part has for each of the system's. */
const share: Record<Exclude<Part, 'pipeline'>, number> = {
  system: 1,
  'disk-full': 0.25,
  'slow-disk': 0.15,
  clock: 0.2,
  locked: 0.25,
  engines: 0.2,
  deploy: 0.25,
}

export function planOf(part: Exclude<Part, 'pipeline'>, options: Options): Round[] {
  const random = createRandom(options.seed * parts.length + parts.indexOf(part))
  const count = Math.ceil(options.rounds * share[part])
  const rounds = Array.from({ length: count }, (_, i) => {
    const seed = random.below(2 ** 31)
    return { part, number: i + 1, seed, fault: choose[part](random, options) }
  })
  return options.round === undefined ? rounds : rounds.filter(({ number }) => number === options.round)
}

/** In a line, for people. */
export function describe({ part, number, fault: { kind, ...about } }: Round): string {
  const details = Object.entries(about).map(([name, value]) => `${name} ${value ?? 'none'}`)
  return `${part}:${number} ${kind} (${details.join(', ')})`
}

/** What kind of thing was done, to be counted. */
export function nameOf(fault: Fault): string {
  switch (fault.kind) {
    case 'moment':
      return fault.isStarting ? 'killed while it starts' : 'killed at a random moment'
    case 'step':
      return 'killed at a step of its own'
    case 'call':
      return 'system calls that fail, and killed'
    case 'full':
      return { run: 'disk full', kill: 'disk full, and killed', start: 'disk full at the start' }[
        fault.during
      ]
    case 'slow':
      return 'slow syncs'
    case 'jump':
      return fault.isKilled ? 'clock set, and killed' : 'clock set'
    case 'lock':
      return fault.file === 'database' ? 'database locked at the start' : 'memories locked'
    case 'engine':
      return `${fault.engine} ${fault.how}`
    case 'deploy':
      return fault.victim === 'nobody'
        ? 'deployed'
        : `${fault.victim} killed${fault.step === undefined ? '' : ' at a step of its own'} during a deploy`
  }
}
