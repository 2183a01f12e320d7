import { lstatSync, unlinkSync } from 'node:fs'
import { type DirectoryHandle, errorCode, within } from './directory.ts'
import type { DirectoryReporter } from './directory-reporter.ts'
import type { Subdirectory } from './inbox-state.ts'

const abandonedAfterMs = 3_600_000
const everyMinutes = 10

/**
 * Removes old files that were never posted, such as temporary files of a writer that was killed. They would slow down
 * every scan.
 */
export function createAbandonedFileCleanup(options: { now(): number; reportDirectory: DirectoryReporter }) {
  const { now, reportDirectory } = options
  return (
    subdirectory: Subdirectory,
    directory: DirectoryHandle,
    names: readonly (string | Buffer)[],
  ): void => {
    const time = now()
    const minute = Math.floor(time / 60_000)
    if (minute - subdirectory.cleanedMinute < everyMinutes) return
    subdirectory.cleanedMinute = minute
    let count = 0
    for (const name of names) {
      const path = within(directory, name)
      try {
        const about = lstatSync(path)
        if (about.isDirectory() || time - about.ctimeMs < abandonedAfterMs) continue
        unlinkSync(path)
        count++
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') break
      }
    }
    if (count > 0)
      reportDirectory(
        'abandoned_files',
        subdirectory,
        `contained ${count} old files that were never posted; they were removed`,
      )
  }
}
