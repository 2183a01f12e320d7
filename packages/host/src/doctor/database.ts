import { readdirSync } from 'node:fs'
import { errorCode } from '@hatchway/spool'
import { bad, type DoctorContext, type Finding, good, some, warning } from './types.ts'

export function database({ config, lockOwner, checkup }: DoctorContext): Finding[] {
  if (lockOwner === 'silent')
    return [
      bad(
        'daemon',
        `Somebody has ${config.data} and does not answer. Look at the process in state/daemon.json: it may be starting, or hang.`,
      ),
    ]
  const running: Finding = good(
    'daemon',
    lockOwner === 'daemon' ? 'It runs, and answers.' : 'None is running.',
  )
  if (!checkup) {
    return lockOwner === 'daemon'
      ? [
          running,
          warning('database', 'The daemon is of another version and could not be asked. Start it anew.'),
        ]
      : [running]
  }
  const { store } = checkup
  if (!store)
    return [
      running,
      warning(
        'database',
        'It is too large to be looked at beside a running daemon: there is no room for a copy. Stop the daemon for it, or make room.',
      ),
    ]
  if (store.damage.length > 0)
    return [
      running,
      bad(
        'database',
        `It is damaged: ${some(store.damage)}. Stop the daemon, keep a copy of state/, and restore a backup: hatchway restore.`,
      ),
    ]
  if (store.version > store.newest)
    return [
      running,
      bad(
        'database',
        `It was written by a newer Hatchway (store version ${store.version}, this one knows ${store.newest}). Upgrade Hatchway, or restore a backup.`,
      ),
    ]
  return [
    running,
    store.version < store.newest
      ? warning(
          'database',
          `It is whole, and of an earlier version (${store.version}): the next start brings it to ${store.newest}. Make a backup first.`,
        )
      : good('database', `It is whole (store version ${store.version}).`),
    store.audit.ok
      ? good('audit log', store.audit.message)
      : bad(
          'audit log',
          `${store.audit.message} See docs/audit.md for what that means, and keep a copy of state/.`,
        ),
  ]
}

/** What waits for somebody to look at it. */
export function waiting({ layout, checkup }: DoctorContext): Finding[] {
  const refused = countErrors(layout.errors)
  const failed = checkup?.store?.messages.failed ?? 0
  const pending = checkup?.store?.messages.pending ?? 0
  return [
    refused === 0
      ? good('errors', 'No refused file waits.')
      : warning(
          'errors',
          `${refused} refused files wait. Look at them: hatchway errors list; once the cause is mended: hatchway errors replay.`,
        ),
    failed === 0
      ? good('messages', pending === 0 ? 'All were delivered.' : `${pending} are on their way.`)
      : warning(
          'messages',
          `${failed} could not be delivered, ${pending} are on their way. Look at them: hatchway messages list --status failed`,
        ),
  ]
}

function countErrors(directory: string): number {
  try {
    return readdirSync(directory).filter(name => name.endsWith('.error.json')).length
  } catch (error) {
    if (['ENOENT', 'EACCES'].includes(errorCode(error))) return 0
    throw error
  }
}
