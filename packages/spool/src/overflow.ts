import { unlinkSync } from 'node:fs'
import { errorCode, within } from './directory.ts'
import type { DirectoryHandles } from './directory-handles.ts'
import type { DirectoryHealth } from './directory-health.ts'
import type { InboxState } from './inbox-state.ts'
import type { Report } from './types.ts'

/** Removes the newest files, unread, of an inbox that has more than `waitingLimit` files. */
export interface Overflow {
  /** removes a few per round, so that other inboxes do not wait */
  removeSome(inbox: InboxState): void
  /** reports how many were removed, once all of them are */
  reportRemoved(inbox: InboxState): void
}

const perRound = 64

export function createOverflow(options: {
  waitingLimit: number
  handles: DirectoryHandles
  directoryHealth: DirectoryHealth
  report(report: Report): void
}): Overflow {
  const { waitingLimit, handles, directoryHealth, report } = options
  return {
    removeSome({ overflow }) {
      if (!overflow) return
      for (const { subdirectory, name } of overflow.entries.splice(-perRound)) {
        const directory = handles.get(subdirectory)
        if (typeof directory === 'string') continue
        try {
          unlinkSync(within(directory, name))
          overflow.count++
        } catch (error) {
          // A directory cannot be unlinked; it is claimed later like any other file.
          const code = errorCode(error)
          if (code !== 'ENOENT' && code !== 'EISDIR') directoryHealth.cannotClaim(subdirectory, code)
        }
      }
    },
    reportRemoved(inbox) {
      if (!inbox.overflow || inbox.overflow.entries.length > 0) return
      const { count } = inbox.overflow
      inbox.overflow = undefined
      if (count === 0) return
      report({
        kind: 'overflow',
        inbox: inbox.id,
        count,
        message: `${inbox.id} had more than ${waitingLimit} files waiting; the newest ${count} were removed unread.`,
      })
    },
  }
}
