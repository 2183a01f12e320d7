import { join } from 'node:path'
import { deliversEvents } from '@hatchway/spool'
import { platform } from '../base/platform.ts'
import { type DoctorContext, type Finding, good, some, warning } from './types.ts'

/** Directories of one group that are watched, at most. */
const watchesOfGroup = 8
const ownWatches = 64
const smallQueue = 16_384
const probeMs = 2000

export const events = async (patient: DoctorContext): Promise<Finding[]> => [
  ...watching(patient),
  ...(await mounts(patient)),
]

function watching({ config, checkup }: DoctorContext): Finding[] {
  if (config.events === 'off') return [warning('events', '`events` is off: every directory is polled.')]
  const limits = platform.watchLimits()
  if (limits === undefined) return [good('events', 'This system names no limits for watching directories.')]
  const { watches, instances, queue } = limits
  const groups = checkup?.store?.groups.length ?? 0
  const needed = groups * watchesOfGroup + ownWatches
  const raise = (name: string, to: number) =>
    `Run as root: sysctl fs.inotify.${name}=${to}, and keep it in /etc/sysctl.d.`
  const findings: Finding[] = []
  if (watches < needed * 2)
    findings.push(
      warning(
        'events',
        `${watches} directories may be watched, and ${groups} groups may need ${needed}. ${raise('max_user_watches', Math.max(65_536, needed * 4))}`,
      ),
    )
  if (instances < 16)
    findings.push(
      warning('events', `Only ${instances} programs may watch at all. ${raise('max_user_instances', 128)}`),
    )
  if (queue < smallQueue)
    findings.push(
      warning(
        'events',
        `Only ${queue} events may wait; a burst of files rings late. ${raise('max_queued_events', smallQueue)}`,
      ),
    )
  return findings.length > 0
    ? findings
    : [good('events', `${watches} directories may be watched, ${queue} events may wait.`)]
}

/** Some mounts deliver no events: each is asked with a file of its own. */
async function mounts({ config, layout, checkup }: DoctorContext): Promise<Finding[]> {
  const groups = checkup?.store?.groups ?? []
  if (groups.length === 0 || config.events === 'off') return []
  const silent: string[] = []
  const unknown: string[] = []
  for (const { folder } of groups) {
    const answer =
      checkup?.modes[folder] === undefined
        ? await deliversEvents(join(layout.ipc, folder, 'tasks'), probeMs)
        : checkup.modes[folder] === 'events'
    if (answer === undefined) unknown.push(folder)
    else if (!answer) silent.push(folder)
  }
  if (unknown.length > 0)
    return [
      warning(
        'mounts',
        `It could not be asked whether events arrive for ${some(unknown)}: their directories are missing or closed to us.`,
      ),
    ]
  return silent.length > 0
    ? [
        warning(
          'mounts',
          `No events arrive for ${some(silent)}: their files are found by polling, up to ${config.pollMaxMs} ms late. A data directory on a local disk is faster.`,
        ),
      ]
    : [good('mounts', `Events arrive for all ${groups.length} groups.`)]
}
