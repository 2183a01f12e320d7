import type { Drop } from './drop.ts'
import type { Report } from './types.ts'

/** Reports something about a directory; `message` goes on where its name ends. */
export type Tell = (kind: Report['kind'], drop: Drop, message: string) => void

export const createTell =
  (report: (report: Report) => void): Tell =>
  (kind, drop, message) =>
    report({
      kind,
      inbox: drop.inbox.id,
      drop: drop.name,
      message: `${drop.inbox.id}/${drop.name} ${message}.`,
    })
