import type { LaunchOptions } from '../daemon/process.ts'
import type { Finding } from '../report.ts'
import { audit, type Property } from './audit.ts'
import { hasProgram } from './available.ts'
import type { Closing } from './closing.ts'
import { killRound } from './kills.ts'
import type { Options, Part } from './options.ts'
import { describe, nameOf, type Round } from './plan.ts'
import { quiesce } from './quiesce.ts'
import { openRequestLog, type RequestLog } from './request-log.ts'
import { openTestbed, type Testbed } from './testbed.ts'
import { createTraffic, type Traffic } from './traffic.ts'

export interface PartRun {
  options: Options
  rounds: readonly Round[]
  closing: Closing
  progress(line: string): void
}

/** An installation, what is asked of it, and what is written down of that. */
export interface Scene {
  testbed: Testbed
  requestLog: RequestLog
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
    did: ({ fault }) => void counts.set(nameOf(fault), (counts.get(nameOf(fault)) ?? 0) + 1),
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
  const { testbed, requestLog, traffic } = scene
  const tally = createTally()
  for (const round of run.rounds) {
    run.progress(`${describe(round)} · ${requestLog.said.length} said, ${requestLog.asked.length} asked`)
    tally.did(round)
    await play(round, tally)
  }
  run.progress(`${part}: it comes to rest`)
  await more.before?.()
  const unfinished = await quiesce(testbed, { requestLog, traffic, ...(more.how ? { how: more.how } : {}) })
  const properties: Property[] = [
    { name: 'seen meanwhile', count: told(requestLog), problems: tally.problems },
    { name: 'comes to rest', count: 'it did', problems: unfinished },
    ...(await audit({ testbed, requestLog, wasSet: more.wasSet ?? false })),
  ]
  explain(part, properties)
  return [...tally.findings(part), ...findingsOf(part, properties)]
}

const told = ({ refusals }: RequestLog): string => {
  const all = [...refusals].map(([name, count]) => `${count} × ${name}`)
  return all.length === 0 ? 'no refusals' : `refused: ${all.join(', ')}`
}

export async function openScene(
  run: PartRun,
  more: Partial<Parameters<typeof openTestbed>[0]> = {},
  now?: () => number,
): Promise<Scene> {
  const { durability } = run.options
  const testbed = await openTestbed({ durability, closing: run.closing, ...more })
  const requestLog = openRequestLog()
  const traffic = createTraffic({ testbed, requestLog, ...(now ? { now } : {}) })
  return { testbed, requestLog, traffic }
}

export async function tortureSystem(run: PartRun): Promise<Finding[]> {
  if (!hasProgram('bwrap')) return untried('system', 'bubblewrap is not installed')
  const canInject = hasProgram('strace')
  const scene = await openScene(run)
  const steps = { reached: 0, all: 0 }
  const findings = await inOneScene('system', run, scene, async round => {
    const { fault } = round
    if (fault.kind !== 'moment' && fault.kind !== 'step' && fault.kind !== 'call') return
    const gentle = fault.kind === 'call' && !canInject
    const isReached = await killRound(scene.testbed, scene.traffic, {
      ...round,
      fault: gentle ? { kind: 'moment', isStarting: false, ms: fault.ms } : fault,
    })
    if (fault.kind === 'step') {
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
