import { lstatSync, unlinkSync } from 'node:fs'
import { errorCode, type PinnedDirectory, within } from './directory.ts'
import type { Drop } from './drop.ts'
import type { Tell } from './tell.ts'

const litterAgeMs = 3_600_000
const everyMinutes = 10

/** Temporary files whose writer is long gone, and whatever else is no posted file, would slow every look for ever. */
export function createTidying(options: { now(): number; tell: Tell }) {
  const { now, tell } = options
  return (drop: Drop, directory: PinnedDirectory, names: readonly (string | Buffer)[]): void => {
    const time = now()
    const minute = Math.floor(time / 60_000)
    if (minute - drop.tidiedMinute < everyMinutes) return
    drop.tidiedMinute = minute
    let count = 0
    for (const name of names) {
      const path = within(directory, name)
      try {
        const about = lstatSync(path)
        if (about.isDirectory() || time - about.ctimeMs < litterAgeMs) continue
        unlinkSync(path)
        count++
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') break
      }
    }
    if (count > 0)
      tell('littered', drop, `held ${count} abandoned files that were never posted; they were removed`)
  }
}
