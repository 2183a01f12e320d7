import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { errorCode, type PinnedDirectory, pinDirectory } from './directory.ts'
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

// Not the process's number: two sandboxes, or two threads, have the same one, and would write into each other's file.
const writer = randomBytes(6).toString('hex')
let temporaryCounter = 0

/**
 * Puts a whole file into a directory, or none at all (promise 1): written under a temporary name that must not exist,
 * renamed when whole. The directory is pinned first and no link is followed, so it is safe to post into a directory
 * that somebody else can write to, as long as `staging` is ours alone. Returns the name.
 */
export function post(directory: string, content: string | Uint8Array, options: PostOptions = {}): string {
  const name = options.name ?? freshName()
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw Object.assign(new Error(`${JSON.stringify(name)} is not the name of a file`), { code: 'EINVAL' })
  }
  const target = pin(directory, directory)
  let staging: PinnedDirectory | undefined
  try {
    if (options.staging === undefined) staging = ownStaging(target, directory)
    const temporary = join(staging?.path ?? options.staging ?? '', `${writer}-${++temporaryCounter}.tmp`)
    write(temporary, content, options)
    try {
      replace(temporary, `${target.path}/${name}`)
    } catch (error) {
      unlinkSync(temporary)
      throw error
    }
    return name
  } finally {
    staging?.close()
    target.close()
  }
}

/** What has the name goes, as with any rename, an empty directory as well: nobody can keep the name from us for long. */
function replace(temporary: string, path: string): void {
  try {
    renameSync(temporary, path)
  } catch (error) {
    if (errorCode(error) !== 'EISDIR') throw error
    rmdirSync(path)
    renameSync(temporary, path)
  }
}

function pin(path: string, name: string): PinnedDirectory {
  const pinned = pinDirectory(path)
  if (typeof pinned !== 'string') return pinned
  throw Object.assign(new Error(`${name} cannot be posted to: it is ${pinned.replaceAll('_', ' ')}`), {
    code: pinned === 'missing' ? 'ENOENT' : pinned === 'not_a_directory' ? 'ENOTDIR' : 'EACCES',
  })
}

function write(
  path: string,
  content: string | Uint8Array,
  { mode = 0o644, owner, sync = false }: PostOptions,
): void {
  const fd = openSync(path, flags, mode)
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

/** Pinned like the directory: a link in its place would have the half-written file made elsewhere. */
function ownStaging(directory: PinnedDirectory, name: string): PinnedDirectory {
  const path = `${directory.path}/.tmp`
  const there = pinDirectory(path)
  if (there !== 'missing') return typeof there === 'string' ? pin(path, `${name}/.tmp`) : there
  mkdirSync(path, { recursive: true })
  return pin(path, `${name}/.tmp`)
}
