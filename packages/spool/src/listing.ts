import { type Dir, lstatSync, opendirSync, readdirSync } from 'node:fs'
import { type PinnedDirectory, within } from './directory.ts'
import { isPostedName, timeOfName } from './names.ts'

export interface Listing {
  /** names of posted files, as far as possible in the order they were posted */
  names: (string | Buffer)[]
  times: number[]
  /** names of some files that are not posted: temporary ones, and litter */
  others: (string | Buffer)[]
  /** how many names were read, of either kind */
  seen: number
}

/** A look into a directory; one with very many names is taken in slices, so that nobody else waits for it. */
export interface Look {
  /** the listing, or undefined while there is more to read; the directory is pinned anew in each turn */
  next(directory: PinnedDirectory): Listing | undefined
  /** time spent so far; not counted where it is short */
  readonly tookMs: number
  close(): void
}

/** Asking each file for its time would let a flood of oddly named files hold everybody up. */
const askLimit = 2000
const otherLimit = 5000
/** What a directory of some thousand names takes. It does not shrink: one that was flooded stays large. */
const largeBytes = 131_072
const sliceNames = 2000

/** The kernel gives so many in one piece; files come and go between two pieces. */
const pieceNames = 256

export const isWhole = (listing: Listing) => listing.seen <= pieceNames

export const isLarge = (directory: PinnedDirectory) => directory.size > largeBytes

export function beginLook(directory: PinnedDirectory, nameLimit: number): Look {
  if (!isLarge(directory)) return atOnce
  const { add, listing } = collect()
  // Its own handle: the look outlives the turn that began it.
  const entries: Dir = opendirSync(directory.path, { encoding: 'latin1', bufferSize: sliceNames })
  let tookMs = 0
  const readSlice = (pinned: PinnedDirectory): Listing | undefined => {
    for (let i = 0; i < sliceNames; i++) {
      const entry = entries.readSync()
      if (entry === null || listing.names.length >= nameLimit) {
        entries.closeSync()
        return listing
      }
      add(pinned, entry.name)
    }
    return undefined
  }
  return {
    next(pinned) {
      const begun = performance.now()
      const result = readSlice(pinned)
      tookMs += performance.now() - begun
      return result
    },
    get tookMs() {
      return tookMs
    },
    close: () => entries.closeSync(),
  }
}

/** One look into a directory that is not large. */
export function list(directory: PinnedDirectory): Listing {
  const { add, listing } = collect()
  for (const name of readdirSync(directory.path, 'latin1')) add(directory, name)
  return listing
}

const atOnce: Look = { next: list, tookMs: 0, close: () => {} }

export function countPosted(directory: PinnedDirectory): number {
  let count = 0
  for (const name of readdirSync(directory.path, 'latin1')) if (isPostedName(name)) count++
  return count
}

/**
 * A name that begins with milliseconds says its time; for others the file is asked. Names are read as bytes (latin1
 * has a character for each), because one that is not UTF-8 cannot be told from its decoded form.
 */
function collect() {
  const listing: Listing = { names: [], times: [], others: [], seen: 0 }
  let asked = 0
  const add = (directory: PinnedDirectory, bytes: string) => {
    listing.seen++
    const name = notAscii.test(bytes) ? Buffer.from(bytes, 'latin1') : bytes
    if (!isPostedName(bytes)) {
      if (listing.others.length < otherLimit) listing.others.push(name)
      return
    }
    listing.names.push(name)
    listing.times.push(
      timeOfName(bytes) ??
        (asked++ < askLimit ? fileTime(within(directory, name)) : Number.POSITIVE_INFINITY),
    )
  }
  return { add, listing }
}

const notAscii = /[\x80-\xff]/

const fileTime = (path: string | Buffer): number =>
  Math.floor(lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY)
