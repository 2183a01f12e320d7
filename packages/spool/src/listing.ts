import { type Dir, lstatSync, opendirSync, readdirSync } from 'node:fs'
import { type DirectoryHandle, within } from './directory.ts'
import { isPostedName, timeOfName } from './names.ts'

export interface Listing {
  /** names of posted files, roughly in the order they were posted */
  names: (string | Buffer)[]
  times: number[]
  /** names of some files that are not posted: temporary and unrelated ones */
  others: (string | Buffer)[]
  /** how many names were read, posted or not */
  nameCount: number
}

/** Lists a directory. A large one is read in slices, so that other inboxes do not wait for it. */
export interface DirectoryScan {
  /** returns the listing, or undefined if there is more to read; the handle may differ from round to round */
  next(directory: DirectoryHandle): Listing | undefined
  /** time spent so far; stays 0 for a directory that is not large */
  readonly tookMs: number
  close(): void
}

/** Names without a time need a stat call each. Without a limit, a flood of such names would block everyone. */
const statLimit = 2000
const othersLimit = 5000
/**
 * The size of a directory with a few thousand names. It never shrinks: a directory that was flooded once stays large.
 */
const largeBytes = 131_072
const namesPerSlice = 2000

/** The kernel returns this many names per call. Between two calls files come and go. */
const atomicNames = 256

export const isAtomic = (listing: Listing) => listing.nameCount <= atomicNames

export const isLarge = (directory: DirectoryHandle) => directory.size > largeBytes

export function startScan(directory: DirectoryHandle, nameLimit: number): DirectoryScan {
  if (!isLarge(directory)) return singleStep
  const { add, listing } = createCollector()
  // The scan outlives this round, so it needs a handle of its own.
  const entries: Dir = opendirSync(directory.path, { encoding: 'latin1', bufferSize: namesPerSlice })
  let tookMs = 0
  const readSlice = (handle: DirectoryHandle): Listing | undefined => {
    for (let i = 0; i < namesPerSlice; i++) {
      const entry = entries.readSync()
      if (entry === null || listing.names.length >= nameLimit) {
        entries.closeSync()
        return listing
      }
      add(handle, entry.name)
    }
    return undefined
  }
  return {
    next(handle) {
      const startedAt = performance.now()
      const result = readSlice(handle)
      tookMs += performance.now() - startedAt
      return result
    },
    get tookMs() {
      return tookMs
    },
    close: () => entries.closeSync(),
  }
}

/** Lists a directory that is not large, in one step. */
export function listDirectory(directory: DirectoryHandle): Listing {
  const { add, listing } = createCollector()
  for (const name of readdirSync(directory.path, 'latin1')) add(directory, name)
  return listing
}

const singleStep: DirectoryScan = { next: listDirectory, tookMs: 0, close: () => {} }

export function countPosted(directory: DirectoryHandle): number {
  let count = 0
  for (const name of readdirSync(directory.path, 'latin1')) if (isPostedName(name)) count++
  return count
}

/**
 * A name that starts with milliseconds tells its time; other files need a stat call. Names are read as latin1, one
 * character per byte, because decoding as UTF-8 would lose the bytes of invalid names.
 */
function createCollector() {
  const listing: Listing = { names: [], times: [], others: [], nameCount: 0 }
  let statCount = 0
  const add = (directory: DirectoryHandle, bytes: string) => {
    listing.nameCount++
    const name = notAscii.test(bytes) ? Buffer.from(bytes, 'latin1') : bytes
    if (!isPostedName(bytes)) {
      if (listing.others.length < othersLimit) listing.others.push(name)
      return
    }
    listing.names.push(name)
    listing.times.push(
      timeOfName(bytes) ??
        (statCount++ < statLimit ? fileTime(within(directory, name)) : Number.POSITIVE_INFINITY),
    )
  }
  return { add, listing }
}

const notAscii = /[\x80-\xff]/

const fileTime = (path: string | Buffer): number =>
  Math.floor(lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY)
