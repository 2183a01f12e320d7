import { unlinkSync } from 'node:fs'
import { errorCode, within } from './directory.ts'
import type { InboxState } from './drop.ts'
import type { Pins } from './pins.ts'
import type { Trouble } from './trouble.ts'
import type { Report } from './types.ts'

/** Throws away, unread, the newest files of an inbox that has more waiting than it may. */
export interface Shedding {
  /** some in each turn, so that nobody waits for it */
  some(inbox: InboxState): void
  /** says how many it were, once they are gone */
  reportDone(inbox: InboxState): void
}

const perTurn = 64

export function createShedding(options: {
  waitingLimit: number
  pins: Pins
  trouble: Trouble
  report(report: Report): void
}): Shedding {
  const { waitingLimit, pins, trouble, report } = options
  return {
    some({ shed }) {
      if (!shed) return
      for (const { drop, name } of shed.entries.splice(-perTurn)) {
        const directory = pins.of(drop)
        if (typeof directory === 'string') continue
        try {
          unlinkSync(within(directory, name))
          shed.count++
        } catch (error) {
          // A directory goes the way of all files, when its turn comes.
          const code = errorCode(error)
          if (code !== 'ENOENT' && code !== 'EISDIR') trouble.cannotClaim(drop, code)
        }
      }
    },
    reportDone(inbox) {
      if (!inbox.shed || inbox.shed.entries.length > 0) return
      const { count } = inbox.shed
      inbox.shed = undefined
      if (count === 0) return
      report({
        kind: 'shed',
        inbox: inbox.id,
        count,
        message: `${inbox.id} had more than ${waitingLimit} files waiting; the newest ${count} were thrown away unread.`,
      })
    },
  }
}
