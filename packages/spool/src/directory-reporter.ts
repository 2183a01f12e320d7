import type { Subdirectory } from './inbox-state.ts'
import type { Report } from './types.ts'

/** Reports something about a directory. The message starts with its name and continues with `message`. */
export type DirectoryReporter = (kind: Report['kind'], subdirectory: Subdirectory, message: string) => void

export const createDirectoryReporter =
  (report: (report: Report) => void): DirectoryReporter =>
  (kind, subdirectory, message) =>
    report({
      kind,
      inbox: subdirectory.inbox.id,
      subdirectory: subdirectory.name,
      message: `${subdirectory.inbox.id}/${subdirectory.name} ${message}.`,
    })
