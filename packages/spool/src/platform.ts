import { existsSync } from 'node:fs'

/**
 * What differs between Linux and other systems. Node has no openat(2). Only Linux offers a path relative to an open
 * directory without it. Elsewhere we use the plain path: a link is still refused, but a swap between two system calls goes
 * unnoticed.
 */
const hasHandles = existsSync('/proc/self/fd')

/** A path that leads to the open directory, whatever its name stands for by now; `path` where there is no such thing. */
export const pathOfHandle = (fd: number, path: string): string => (hasHandles ? `/proc/self/fd/${fd}` : path)

/** What to do when the system refuses to watch one more directory. */
export const watchAdvice = (code: string): string =>
  code === 'ENOSPC'
    ? 'raise fs.inotify.max_user_watches'
    : code === 'EMFILE'
      ? 'raise fs.inotify.max_user_instances or the limit of open files'
      : 'look up this error code'
