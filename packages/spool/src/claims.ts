import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode, type PinnedDirectory, within } from './directory.ts'
import { type ClaimName, claimName, harmlessName, isValidName, parseClaimName } from './names.ts'
import { createReader } from './read.ts'
import type { ClaimedFile } from './types.ts'

/**
 * Claiming is a rename into a directory of ours on the same file system: it happens or it does not, and afterwards
 * the writer no longer has a name for the file (promise 3). What cannot be claimed is not read, let alone executed
 * (lesson 14).
 *
 * The claimed files of one batch lie in one of several buckets, taken in turn: removing the last batch and claiming
 * the next would otherwise wait for the same directory's lock in the kernel.
 */
export interface Claims {
  /** the claimed file, or the error code of the rename (`ENOENT`: its writer took it back) */
  claim(from: PinnedDirectory, inbox: string, drop: string, name: string | Buffer): ClaimedFile | string
  /** takes over a file that is ours already, such as one that is to be handled again */
  adopt(path: string, inbox: string, drop: string, name: string): ClaimedFile | string
  /** what an earlier process had claimed and not removed, oldest first; to be read with `reread` */
  recover(): ClaimedFile[]
  reread(file: ClaimedFile): ClaimedFile
  nextBucket(): void
}

const bucketCount = 8

export function createClaims(options: { directory: string; fileLimit: number; firstSeq: number }): Claims {
  const { directory, fileLimit } = options
  const read = createReader(fileLimit)
  const buckets = Array.from({ length: bucketCount }, (_, i) => join(directory, String(i)))
  for (const bucket of buckets) mkdirSync(bucket, { recursive: true, mode: 0o700 })
  let seq = options.firstSeq - 1
  let current = 0

  const describe = (path: string, claim: ClaimName, recovered: boolean): ClaimedFile => {
    const file = unread(path, claim, recovered)
    try {
      const content = read(path)
      file.inode = content.inode
      file.mtimeUs = content.mtimeUs
      file.size = content.size
      file.text = content.text
      if (claim.valid) file.problem = content.problem
    } catch {
      // The disk failed, perhaps only for a moment: the consumer is told, and can have it read again.
      if (claim.valid) file.problem = 'unreadable'
    }
    return file
  }

  const move = (from: string | Buffer, inbox: string, drop: string, name: string): ClaimedFile | string => {
    const number = seq + 1
    const path = `${buckets[current]}/${claimName(number, inbox, drop, name)}`
    try {
      renameSync(from, path)
    } catch (error) {
      return errorCode(error)
    }
    seq = number
    const valid = isValidName(name)
    return describe(path, { seq: number, inbox, drop, name: valid ? name : harmlessName(name), valid }, false)
  }

  return {
    claim(from, inbox, drop, name) {
      return move(within(from, name), inbox, drop, typeof name === 'string' ? name : name.toString('latin1'))
    },
    adopt: (path, inbox, drop, name) => move(path, inbox, drop, name),
    recover() {
      const files: ClaimedFile[] = []
      for (const bucket of buckets) {
        for (const entry of readdirSync(bucket)) {
          const claim = parseClaimName(entry)
          if (!claim) continue
          seq = Math.max(seq, claim.seq)
          files.push(unread(join(bucket, entry), claim, true))
        }
      }
      return files.sort((a, b) => a.seq - b.seq)
    },
    reread(file) {
      const valid = file.problem !== 'bad_name'
      return describe(file.path, { ...file, valid }, file.recovered)
    },
    nextBucket() {
      current = (current + 1) % bucketCount
    },
  }
}

const unread = (
  path: string,
  { seq, inbox, drop, name, valid }: ClaimName,
  recovered: boolean,
): ClaimedFile => ({
  seq,
  inbox,
  drop,
  name,
  path,
  inode: 0,
  mtimeUs: 0,
  size: 0,
  text: '',
  problem: valid ? undefined : 'bad_name',
  recovered,
  mayGrow: false,
})
