import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { pathOfHandle } from './platform.ts'

/**
 * An open directory. Its owner may replace the name by a link or by another directory at any time; everything done
 * through `path` still happens in the directory that was opened.
 */
export interface DirectoryHandle {
  path: string
  inode: number
  device: number
  /** when its entries last changed, at the time it was opened */
  mtimeMs: number
  /** bytes of the directory itself, which hint at how many names it has held */
  size: number
  close(): void
}

export type OpenFailure = 'missing' | 'not_a_directory' | 'unreadable'

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Opens a directory without following a link in the last part of the path. */
export function openDirectory(path: string): DirectoryHandle | OpenFailure {
  try {
    const fd = openSync(path, flags)
    const { ino, dev, mtimeMs, size } = fstatSync(fd)
    return {
      path: pathOfHandle(fd, path),
      inode: ino,
      device: dev,
      mtimeMs,
      size,
      close: () => closeSync(fd),
    }
  } catch (error) {
    return openFailure(error)
  }
}

/** The path of a name in the directory. Names that are not UTF-8 are passed as bytes. */
export const within = (directory: DirectoryHandle, name: string | Buffer): string | Buffer =>
  typeof name === 'string'
    ? `${directory.path}/${name}`
    : Buffer.concat([Buffer.from(`${directory.path}/`), name])

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
}

function openFailure(error: unknown): OpenFailure {
  const code = errorCode(error)
  if (code === 'ENOENT') return 'missing'
  if (code === 'ENOTDIR' || code === 'ELOOP') return 'not_a_directory'
  return 'unreadable'
}
