import {
  closeSync,
  constants,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { errorCode, pinDirectory } from './directory.ts'
import { createNames } from './names.ts'
import type { Owner } from './types.ts'

export interface PostOptions {
  /** the name to post under; left out: a fresh one that carries its order */
  name?: string
  /**
   * a directory on the same file system for the half-written file, outside the reader's watch; left out: `.tmp` in the
   * directory itself, which halves the events the reader gets (measured.md)
   */
  staging?: string
  mode?: number
  owner?: Owner | undefined
  /** wait until the content is on the disk */
  sync?: boolean
}

const freshName = createNames()
const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

let temporaryCounter = 0

/**
 * Puts a whole file into a directory, or none at all (promise 1): written under a temporary name that must not exist,
 * renamed when whole. The directory is pinned first and no link is followed, so it is safe to post into a directory
 * that somebody else can write to, as long as `staging` is ours alone. Returns the name.
 */
export function post(directory: string, content: string | Uint8Array, options: PostOptions = {}): string {
  const name = options.name ?? freshName()
  const pinned = pinDirectory(directory)
  if (typeof pinned === 'string') {
    throw Object.assign(new Error(`${directory} cannot be posted to: it is ${pinned.replaceAll('_', ' ')}`), {
      code: pinned === 'missing' ? 'ENOENT' : pinned === 'not_a_directory' ? 'ENOTDIR' : 'EACCES',
    })
  }
  try {
    const temporary = join(
      options.staging ?? ownStaging(directory),
      `${process.pid}-${++temporaryCounter}-${name}.tmp`.slice(-250),
    )
    write(temporary, content, options)
    try {
      renameSync(temporary, `${pinned.path}/${name}`)
    } catch (error) {
      unlinkSync(temporary)
      throw error
    }
    return name
  } finally {
    pinned.close()
  }
}

function write(
  path: string,
  content: string | Uint8Array,
  { mode = 0o644, owner, sync = false }: PostOptions,
): void {
  let fd: number
  try {
    fd = openSync(path, flags, mode)
  } catch (error) {
    // A process with our number died while writing; its half file is nobody's.
    if (errorCode(error) !== 'EEXIST') throw error
    unlinkSync(path)
    fd = openSync(path, flags, mode)
  }
  try {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written)
    if (owner) fchownSync(fd, owner.uid, owner.gid)
    if (sync) fsyncSync(fd)
  } catch (error) {
    unlinkSync(path)
    throw error
  } finally {
    closeSync(fd)
  }
}

const prepared = new Set<string>()
function ownStaging(directory: string): string {
  const staging = join(directory, '.tmp')
  if (!prepared.has(staging)) {
    mkdirSync(staging, { recursive: true })
    prepared.add(staging)
  }
  return staging
}
