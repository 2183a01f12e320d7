import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { type DirectoryHandle, errorCode, within } from './directory.ts'
import { type ClaimName, claimName, isValidName, parseClaimName, sanitizeName } from './names.ts'
import { createFileReader } from './read.ts'
import type { ClaimedFile } from './types.ts'

/**
 * Claiming takes a file away from its writer before anyone reads it.
 *
 *   posted    {inbox}/{subdirectory}/{name}                               the writer can still change or remove it
 *   claimed   {directory}/{bucket}/{seq}~{inbox}~{subdirectory}~{name}    only we have a name for it
 *   removed   the consumer discarded it (remove.ts), or moved it to quarantine
 *
 * The step from posted to claimed is one rename on the same file system, so it happens completely or not at all. A
 * file that cannot be claimed is never read. After a crash, `recover` finds everything that is claimed and not
 * removed.
 *
 * Buckets alternate between batches. With one directory, removing the last batch and claiming the next would wait for
 * the same lock in the kernel.
 */
export interface Claims {
  /** returns the claimed file, or the error code of the rename (`ENOENT`: the writer removed it) */
  claim(
    from: DirectoryHandle,
    inbox: string,
    subdirectory: string,
    name: string | Buffer,
  ): ClaimedFile | string
  /** claims a file that is already ours, for example one from quarantine that is processed again */
  adopt(path: string, inbox: string, subdirectory: string, name: string): ClaimedFile | string
  /** files that an earlier process claimed and did not remove, oldest first; read them with `reread` */
  recover(): ClaimedFile[]
  reread(file: ClaimedFile): ClaimedFile
  nextBucket(): void
}

const bucketCount = 8

export function createClaims(options: { directory: string; fileLimit: number; firstSeq: number }): Claims {
  const { directory, fileLimit } = options
  const read = createFileReader(fileLimit)
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
      // A disk error may be temporary. The consumer sees the problem and can postpone the file.
      if (claim.valid) file.problem = 'unreadable'
    }
    return file
  }

  const move = (
    from: string | Buffer,
    inbox: string,
    subdirectory: string,
    name: string,
  ): ClaimedFile | string => {
    const number = seq + 1
    const path = `${buckets[current]}/${claimName(number, inbox, subdirectory, name)}`
    try {
      renameSync(from, path)
    } catch (error) {
      return errorCode(error)
    }
    seq = number
    const valid = isValidName(name)
    return describe(
      path,
      { seq: number, inbox, subdirectory, name: valid ? name : sanitizeName(name), valid },
      false,
    )
  }

  return {
    claim(from, inbox, subdirectory, name) {
      return move(
        within(from, name),
        inbox,
        subdirectory,
        typeof name === 'string' ? name : name.toString('latin1'),
      )
    },
    adopt: (path, inbox, subdirectory, name) => move(path, inbox, subdirectory, name),
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
  { seq, inbox, subdirectory, name, valid }: ClaimName,
  recovered: boolean,
): ClaimedFile => ({
  seq,
  inbox,
  subdirectory,
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
