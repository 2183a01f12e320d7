import type { LaunchOptions } from '../launch.ts'
import type { Finding } from '../report.ts'
import { audit, type Property } from './audit.ts'
import { type Book, openBook } from './book.ts'
import { comeToRest } from './calm.ts'
import type { Closing } from './closing.ts'
import { hasProgram } from './has.ts'
import { type Household, openHousehold } from './household.ts'
import { killRound } from './kills.ts'
import type { Options, Part } from './options.ts'
import { describe, nameOf, type Round } from './plan.ts'
import { createTraffic, type Traffic } from './traffic.ts'

export interface PartRun {
  options: Options
  rounds: readonly Round[]
  closing: Closing
  progress(line: string): void
}

/** An installation, what is asked of it, and what is written down of that. */
export interface Scene {
  household: Household
  book: Book
  traffic: Traffic
}

/** How often each kind of thing was done, and what could not be. */
export interface Tally {
  did(round: Round): void
  /** something that a round itself has seen */
  saw(problem: string): void
  problems: string[]
  findings(part: Part): Finding[]
}

export function createTally(): Tally {
  const counts = new Map<string, number>()
  const problems: string[] = []
  return {
    did: ({ hurt }) => void counts.set(nameOf(hurt), (counts.get(nameOf(hurt)) ?? 0) + 1),
    saw: problem => void problems.push(problem),
    problems,
    findings: part =>
      [...counts].map(([name, count]) => ({
        what: `${part}: ${name}`,
        seen: `${count} times`,
        bound: 'at least once',
        ok: count > 0,
      })),
  }
}

export const untried = (part: Part, why: string): Finding[] => [
  { what: part, seen: why, bound: 'tried', ok: undefined },
]

const shownProblems = 12

export const findingsOf = (part: Part, properties: readonly Property[]): Finding[] =>
  properties.map(({ name, count, problems }) => ({
    what: `${part}: ${name}`,
    seen: problems.length === 0 ? count : `${count}; ${problems.length} wrong`,
    bound: '0 wrong',
    ok: problems.length === 0,
  }))

/** To be read by whoever looks for the cause. */
export function explain(part: Part, properties: readonly Property[]): void {
  for (const { name, problems } of properties) {
    for (const problem of problems.slice(0, shownProblems)) console.error(`  ${part}: ${name}: ${problem}`)
    if (problems.length > shownProblems) console.error(`  … and ${problems.length - shownProblems} more`)
  }
}

/** Rounds on one installation, then rest, then the audit. */
export async function inOneScene(
  part: Part,
  run: PartRun,
  scene: Scene,
  play: (round: Round, tally: Tally) => Promise<void>,
  more: {
    wasSet?: boolean
    how?: LaunchOptions
    /** ends what the rounds have left running */
    before?: () => Promise<void>
  } = {},
): Promise<Finding[]> {
  const { household, book, traffic } = scene
  const tally = createTally()
  for (const round of run.rounds) {
    run.progress(`${describe(round)} · ${book.said.length} said, ${book.asked.length} asked`)
    tally.did(round)
    await play(round, tally)
  }
  run.progress(`${part}: it comes to rest`)
  await more.before?.()
  const unfinished = await comeToRest(household, { book, traffic, ...(more.how ? { how: more.how } : {}) })
  const properties: Property[] = [
    { name: 'seen meanwhile', count: told(book), problems: tally.problems },
    { name: 'comes to rest', count: 'it did', problems: unfinished },
    ...(await audit({ household, book, wasSet: more.wasSet ?? false })),
  ]
  explain(part, properties)
  return [...tally.findings(part), ...findingsOf(part, properties)]
}

const told = ({ refusals }: Book): string => {
  const all = [...refusals].map(([name, count]) => `${count} × ${name}`)
  return all.length === 0 ? 'no refusals' : `refused: ${all.join(', ')}`
}

export async function openScene(
  run: PartRun,
  more: Partial<Parameters<typeof openHousehold>[0]> = {},
  now?: () => number,
): Promise<Scene> {
  const { durability } = run.options
  const household = await openHousehold({ durability, closing: run.closing, ...more })
  const book = openBook()
  const traffic = createTraffic({ household, book, ...(now ? { now } : {}) })
  return { household, book, traffic }
}

export async function tortureSystem(run: PartRun): Promise<Finding[]> {
  if (!hasProgram('bwrap')) return untried('system', 'bubblewrap is not installed')
  const canInject = hasProgram('strace')
  const scene = await openScene(run)
  const steps = { reached: 0, all: 0 }
  const findings = await inOneScene('system', run, scene, async round => {
    const { hurt } = round
    if (hurt.kind !== 'moment' && hurt.kind !== 'step' && hurt.kind !== 'call') return
    const gentle = hurt.kind === 'call' && !canInject
    const isReached = await killRound(scene.household, scene.traffic, {
      ...round,
      hurt: gentle ? { kind: 'moment', isStarting: false, ms: hurt.ms } : hurt,
    })
    if (hurt.kind === 'step') {
      steps.all++
      if (isReached) steps.reached++
    }
  })
  return [
    ...findings,
    ...(canInject || !run.options.inject
      ? []
      : untried('system', 'strace is not installed: no calls failed')),
    {
      what: 'system: steps that were reached',
      seen: `${steps.reached} of ${steps.all}`,
      // One or two can be missed on a busy machine: a step may need more of its kind than the round has time for.
      bound: 'some of three or more',
      ok: steps.all < 3 || steps.reached > 0,
    },
  ]
}
