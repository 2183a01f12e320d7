import { randomUUID } from 'node:crypto'
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reasonOf } from '@hatchway/spool'
import { bundlePath } from '../runs/launch.ts'
import { ignoredProxy } from '../runs/model-gateway/proxy.ts'
import { bad, type DoctorContext, type Finding, good, warning } from './types.ts'

/** What runs Hatchway: Node, the agent's side, the clock, the zone. */
export const runtime = (): Finding[] => [node(), bundle()]

/** One that is too old does not get here: bin/hatchway.mjs refuses it. */
const node = (): Finding => {
  const problem = ignoredProxy(process.env)
  return problem === undefined
    ? good('Node', `${process.versions.node}; Hatchway needs 22.13 or newer.`)
    : warning('Node', problem)
}

const bundle = (): Finding =>
  existsSync(bundlePath)
    ? good('agent', 'The agent’s side is built.')
    : bad('agent', 'The agent’s side is not built. Run: npm run build')

/** File systems of other machines have a clock of their own; so much is nothing to speak of. */
const tolerableMs = 5000

export function clock(patient: DoctorContext): Finding[] {
  const { checkup, now } = patient
  const findings: Finding[] = []
  const jump = checkup?.clock_jump_ms ?? 0
  if (Math.abs(jump) > tolerableMs) {
    findings.push(
      warning(
        'clock',
        `It was set ${jump > 0 ? 'forward' : 'back'} by ${inWords(jump)} since the daemon began. Scheduled tasks follow the clock; keep it right with a time service such as chrony or systemd-timesyncd.`,
      ),
    )
  }
  const ahead = (checkup?.store?.latest ?? 0) - now()
  if (ahead > tolerableMs) {
    findings.push(
      bad(
        'clock',
        `The newest entry of the database is ${inWords(ahead)} in the future: the clock is behind, or was ahead. Set it right before agents run.`,
      ),
    )
  }
  const apart = fileSystemApart(patient)
  if (typeof apart === 'string')
    findings.push(warning('clock', `It could not be compared with the file system’s: ${apart}`))
  else if (Math.abs(apart) > tolerableMs) {
    findings.push(
      warning(
        'clock',
        `The data directory’s file system is ${inWords(apart)} apart from this machine. Both need a time service; until then the ages of files are wrong.`,
      ),
    )
  }
  return findings.length > 0
    ? findings
    : [good('clock', 'It agrees with the file system, and has not jumped.')]
}

function fileSystemApart({ layout, now }: DoctorContext): number | string {
  try {
    // A plain file: whoever starts a daemon now clears such files away, and nothing else.
    const file = join(existsSync(layout.staging) ? layout.staging : tmpdir(), `clock-${randomUUID()}`)
    const before = now()
    writeFileSync(file, '', { flag: 'wx', mode: 0o600 })
    try {
      return statSync(file).mtimeMs - (before + now()) / 2
    } finally {
      rmSync(file, { force: true })
    }
  } catch (error) {
    return reasonOf(error)
  }
}

const inWords = (ms: number): string => {
  const seconds = Math.round(Math.abs(ms) / 1000)
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`
}

export function timeZone({ config, environment }: DoctorContext): Finding {
  const machine = new Intl.DateTimeFormat().resolvedOptions().timeZone
  if (config.timezone === machine) return good('time zone', config.timezone)
  const from = environment.TZ ? 'TZ' : 'this machine'
  return warning(
    'time zone',
    `Tasks go by ${config.timezone}; ${from} says ${machine}. If that is not meant, set \`timezone\` in the configuration.`,
  )
}
