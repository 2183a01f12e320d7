import type { Quarantine, Report } from '@hatchway/spool'
import { reasonOf } from '@hatchway/spool'
import type { Logger } from 'pino'
import { createGroupDirectories, type Layout } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import type { Store } from '../store/types.ts'

const harmless: readonly Report['kind'][] = ['mode', 'appeared', 'claimable']

/** Logs what the spool reports, counts files that were refused unread, and makes directories that are missing. */
export function createReporter(options: {
  quarantine: Pick<Quarantine, 'count'>
  store: Pick<Store, 'group'>
  layout: Layout
  owners: Owners
  log: Logger
  filesWaiting: number
  now(): Date
}): (report: Report) => void {
  const { quarantine, store, layout, owners, log, filesWaiting, now } = options

  const respond = (report: Report) => {
    if (report.kind === 'overflow' && report.inbox !== undefined && report.count) {
      quarantine.count(
        report.inbox,
        'too_many_waiting',
        `More than ${filesWaiting} files were waiting; this many of the newest were refused unread.`,
        report.count,
        now(),
      )
    }
    if (report.kind === 'missing' && report.inbox !== undefined) {
      const group = store.group(report.inbox)
      if (group) createGroupDirectories(layout, group, owners(group.folder))
    }
  }
  return report => {
    const { message, ...about } = report
    log[harmless.includes(report.kind) ? 'info' : 'warn'](about, message)
    try {
      respond(report)
    } catch (error) {
      // Its directory may be locked, or the disk full: that concerns one group and must not end the host.
      log.error({ ...about, reason: reasonOf(error) }, 'nothing could be done about it')
    }
  }
}
