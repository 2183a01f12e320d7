import { constants, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type DirectoryHandle, errorCode, openDirectory } from '@hatchway/spool'

/**
 * Goes through a tree that agents may change at the same time. Each directory is held by its handle and no link is ever
 * followed: otherwise an agent could have the host's own files put into a backup, and read them where it is restored.
 */
export interface Found {
  /** from the root, with slashes */
  path: string
  kind: 'file' | 'directory' | 'link'
  mode: number
  mtimeMs: number
  inode: number
  size: number
  target: string
  /** only for files; to be closed by whoever opens it */
  open(): Promise<FileHandle>
}

export interface WalkOptions {
  /** what is not gone into, and not told of */
  isSkipped?(path: string): boolean
  leftOut(path: string, why: string): void
}

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const deepest = 150
/** after so many names others get their turn */
const namesAtOnce = 200

export async function* walk(root: string, at: string, options: WalkOptions): AsyncGenerator<Found> {
  const directory = openDirectory(root)
  if (typeof directory === 'string') {
    if (directory !== 'missing') options.leftOut(at, directory)
    return
  }
  try {
    yield* within(directory, at, options, 0)
  } finally {
    directory.close()
  }
}

async function* within(
  directory: DirectoryHandle,
  at: string,
  options: WalkOptions,
  depth: number,
): AsyncGenerator<Found> {
  let seen = 0
  for (const name of readdirSync(directory.path, { encoding: 'buffer' })) {
    if (++seen % namesAtOnce === 0) await new Promise(resolve => setImmediate(resolve))
    const text = name.toString('utf8')
    const path = `${at}/${text}`
    if (options.isSkipped?.(path)) continue
    if (!Buffer.from(text).equals(name)) {
      options.leftOut(path, 'its name is not UTF-8')
      continue
    }
    const place = `${directory.path}/${text}`
    try {
      yield* one(place, path, options, depth)
    } catch (error) {
      // It is gone, or was put in the place of something else: whoever has it is at work.
      const code = errorCode(error)
      if (code !== 'ENOENT') options.leftOut(path, code)
    }
  }
}

async function* one(place: string, path: string, options: WalkOptions, depth: number): AsyncGenerator<Found> {
  const outside = lstatSync(place)
  const about = {
    path,
    mode: outside.mode & 0o777,
    mtimeMs: outside.mtimeMs,
    inode: outside.ino,
    size: 0,
    target: '',
    open: () => open(place, flags),
  }
  if (outside.isFile()) return yield { ...about, kind: 'file', size: outside.size }
  if (outside.isSymbolicLink()) return yield { ...about, kind: 'link', target: readlinkSync(place) }
  if (!outside.isDirectory()) return options.leftOut(path, 'it is neither a file nor a directory')
  if (depth >= deepest) return options.leftOut(path, 'it is too deep')
  const directory = openDirectory(place)
  if (typeof directory === 'string') return options.leftOut(path, directory)
  try {
    yield { ...about, kind: 'directory' }
    yield* within(directory, path, options, depth + 1)
  } finally {
    directory.close()
  }
}
