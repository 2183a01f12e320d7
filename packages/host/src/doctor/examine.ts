import { reasonOf } from '@hatchway/spool'
import { layoutOf } from '../base/layout.ts'
import { acquire, DataDirectoryHeld } from '../base/lock.ts'
import type { Config } from '../config.ts'
import type { ConfiguredPlugin } from '../plugin-api/open.ts'
import { configuration } from './configuration.ts'
import { consult } from './daemon.ts'
import { database, waiting } from './database.ts'
import { directories } from './directories.ts'
import { disk, leftovers } from './disk.ts'
import { events } from './events.ts'
import { imageModels } from './image-models.ts'
import { reach } from './reach.ts'
import { clock, runtime, timeZone } from './runtime.ts'
import { orphans, sandboxes } from './sandboxes.ts'
import { bad, type DoctorContext, type Finding } from './types.ts'

/** A finding in the report; `fixed` says what was done about it. */
export interface ReportedFinding {
  what: string
  state: Finding['state']
  says: string
  fixed?: string
}

type Check = (patient: DoctorContext) => Finding | Finding[] | Promise<Finding | Finding[]>

/** The order of the report: causes before their consequences. */
const checks: readonly [string, Check][] = [
  ['runtime', runtime],
  ['clock', clock],
  ['time zone', timeZone],
  ['configuration', configuration],
  ['directories', directories],
  ['disk', disk],
  ['half-written', leftovers],
  ['events', events],
  ['database', database],
  ['waiting', waiting],
  ['channels', reach],
  ['sandbox', sandboxes],
  ['model from images', imageModels],
  ['left over', orphans],
]

/**
 * Looks at everything that Hatchway needs on this machine. It changes nothing unless `fix` is said, and then only what
 * is safe: owners and modes of our own directories, directories that are missing, what dead processes have left.
 */
export async function examine(
  config: Config,
  plugins: readonly ConfiguredPlugin[],
  { fix = false }: { fix?: boolean } = {},
): Promise<ReportedFinding[]> {
  const { who, checkup } = await consult(config)
  const patient: DoctorContext = {
    config,
    plugins,
    layout: layoutOf(config.data),
    lockOwner: who,
    checkup,
    environment: process.env,
    now: Date.now,
  }
  const findings: Finding[] = []
  for (const [what, check] of checks) {
    try {
      findings.push(...[await check(patient)].flat())
    } catch (error) {
      // One check that fails is a finding itself, and must not hide the others.
      findings.push(bad(what, `It could not be checked: ${reasonOf(error)}`))
    }
  }
  return fix ? mend(patient, findings) : findings.map(reported)
}

const reported = ({ what, state, says }: Finding): ReportedFinding => ({ what, state, says })

async function mend(
  { config, lockOwner }: DoctorContext,
  findings: readonly Finding[],
): Promise<ReportedFinding[]> {
  const wanted = findings.some(({ mend: work }) => work)
  if (!wanted) return findings.map(reported)
  // Where nobody is at work, nobody begins to be meanwhile.
  const lock = lockOwner === 'nobody' ? await held(config) : undefined
  try {
    const all: ReportedFinding[] = []
    for (const finding of findings) {
      if (!finding.mend) all.push(reported(finding))
      else if (lockOwner === 'nobody' && !lock)
        all.push({ ...reported(finding), fixed: 'not: somebody has begun to use the data directory' })
      else all.push(await mended(finding, finding.mend))
    }
    return all
  } finally {
    lock?.release()
  }
}

async function mended(finding: Finding, work: NonNullable<Finding['mend']>): Promise<ReportedFinding> {
  try {
    const fixed = await work()
    return { ...reported(finding), state: finding.state === 'bad' ? 'warning' : finding.state, fixed }
  } catch (error) {
    return { ...reported(finding), fixed: `not: ${reasonOf(error)}` }
  }
}

async function held(config: Config) {
  try {
    return await acquire(config.data, { purpose: 'command' })
  } catch (error) {
    if (error instanceof DataDirectoryHeld) return undefined
    throw error
  }
}
