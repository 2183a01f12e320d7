import { lstatSync, readdirSync } from 'node:fs'
import type { PinnedDirectory } from './directory.ts'
import { isPostedName, timeOfName } from './names.ts'

export interface Listing {
  /** names of posted files, as far as possible in the order they were posted */
  names: (string | Buffer)[]
  times: number[]
  /** names of files that are not posted: temporary ones, and litter */
  others: string[]
}

/** Asking each file for its time would let a flood of oddly named files hold everybody up. */
const askLimit = 2000

/**
 * One look into a directory. A name that begins with milliseconds says its time; for others the file is asked. Names
 * that are not UTF-8 cannot be told from their decoded form and are kept as bytes.
 */
export function list(directory: PinnedDirectory): Listing {
  const names: (string | Buffer)[] = []
  const times: number[] = []
  const others: string[] = []
  let asked = 0
  let undecodable = false
  for (const name of readdirSync(directory.path)) {
    if (!isPostedName(name)) {
      others.push(name)
      continue
    }
    if (name.includes('\ufffd')) {
      undecodable = true
      continue
    }
    names.push(name)
    times.push(timeOfName(name) ?? (asked++ < askLimit ? fileTime(`${directory.path}/${name}`) : Infinity))
  }
  if (undecodable) {
    for (const name of readdirSync(directory.path, 'buffer')) {
      const text = name.toString('utf8')
      if (!isPostedName(text) || !text.includes('\ufffd')) continue
      names.push(name)
      times.push(Infinity)
    }
  }
  return { names, times, others }
}

const fileTime = (path: string): number =>
  Math.floor(lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY)
