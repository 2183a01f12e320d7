import { closeSync, constants, existsSync, fstatSync, openSync } from 'node:fs'

/**
 * A directory held by its handle. Whatever its owner does to the name meanwhile (replaces it by a link, swaps it for
 * another directory), what is listed, renamed or created through `path` is in the directory that was opened, never
 * elsewhere (lesson 4).
 */
export interface PinnedDirectory {
  path: string
  inode: number
  device: number
  /** when its entries last changed, as it was opened */
  mtimeMs: number
  /** bytes the directory itself takes: a hint at how many names it has held */
  size: number
  close(): void
}

export type PinFailure = 'missing' | 'not_a_directory' | 'unreadable'

// Only Linux lets a process name a file relative to an open directory without openat(2), which Node does not have.
// Elsewhere the plain path is used: a link in the last place is still refused, a swap in mid-step is not.
const byHandle = existsSync('/proc/self/fd')

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK

export function pinDirectory(path: string): PinnedDirectory | PinFailure {
  try {
    const fd = openSync(path, flags)
    const { ino, dev, mtimeMs, size } = fstatSync(fd)
    return {
      path: byHandle ? `/proc/self/fd/${fd}` : path,
      inode: ino,
      device: dev,
      mtimeMs,
      size,
      close: () => closeSync(fd),
    }
  } catch (error) {
    return pinFailure(error)
  }
}

/** The path of a name in the directory; names that are not UTF-8 are bytes. */
export const within = (directory: PinnedDirectory, name: string | Buffer): string | Buffer =>
  typeof name === 'string'
    ? `${directory.path}/${name}`
    : Buffer.concat([Buffer.from(`${directory.path}/`), name])

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
}

function pinFailure(error: unknown): PinFailure {
  const code = errorCode(error)
  if (code === 'ENOENT') return 'missing'
  if (code === 'ENOTDIR' || code === 'ELOOP') return 'not_a_directory'
  return 'unreadable'
}
