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
import { type DirectoryHandle, errorCode, openDirectory } from './directory.ts'
import { createNames } from './names.ts'
import type { Owner } from './types.ts'

export interface PostOptions {
  /** the file name; by default a new one that carries its order */
  name?: string
  /**
   * a directory on the same file system for the unfinished file, which the reader does not watch; by default `.tmp`
   * in the target directory. Either way the reader gets half as many events as with a temporary file beside the
   * target.
   */
  staging?: string
  mode?: number
  owner?: Owner | undefined
  /** wait until the content is on disk */
  sync?: boolean
}

const freshName = createNames()
const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

// The process id would not be unique: two sandboxes or two threads can share it, and would write into the same file.
const writer = randomBytes(6).toString('hex')
let temporaryCounter = 0

/**
 * Writes a complete file into a directory, or none at all: the content goes to a new temporary file, which is then
 * renamed. No link is followed. Posting into a directory that others can write to is safe if `staging` belongs to us
 * alone. Returns the file name.
 */
export function post(directory: string, content: string | Uint8Array, options: PostOptions = {}): string {
  const name = options.name ?? freshName()
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw Object.assign(new Error(`${JSON.stringify(name)} is not a valid file name`), { code: 'EINVAL' })
  }
  const target = openOrThrow(directory, directory)
  let staging: DirectoryHandle | undefined
  try {
    if (options.staging === undefined) staging = openOwnStaging(target, directory)
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

/** Replaces whatever has this name, including an empty directory, so that nobody can block the name. */
function replace(temporary: string, path: string): void {
  try {
    renameSync(temporary, path)
  } catch (error) {
    if (errorCode(error) !== 'EISDIR') throw error
    rmdirSync(path)
    renameSync(temporary, path)
  }
}

function openOrThrow(path: string, name: string): DirectoryHandle {
  const handle = openDirectory(path)
  if (typeof handle !== 'string') return handle
  throw Object.assign(new Error(`cannot post to ${name}: it is ${handle.replaceAll('_', ' ')}`), {
    code: handle === 'missing' ? 'ENOENT' : handle === 'not_a_directory' ? 'ENOTDIR' : 'EACCES',
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

/** No link is followed here either: it would create the unfinished file somewhere else. */
function openOwnStaging(directory: DirectoryHandle, name: string): DirectoryHandle {
  const path = `${directory.path}/.tmp`
  const existing = openDirectory(path)
  if (existing !== 'missing')
    return typeof existing === 'string' ? openOrThrow(path, `${name}/.tmp`) : existing
  mkdirSync(path, { recursive: true })
  return openOrThrow(path, `${name}/.tmp`)
}
