import { isUtf8 } from 'node:buffer'
import { closeSync, constants, lstatSync, openSync, readSync } from 'node:fs'
import type { Problem } from './types.ts'

export interface FileContent {
  text: string
  problem: Problem | undefined
  inode: number
  mtimeUs: number
  size: number
}

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Returns a function that reads a claimed file once, up to `limit` bytes. The writer has no name for the file any
 * more, so the file that is checked is the file that is opened. Its content may still change, so it is copied in a
 * single call. Only a regular file with one link is opened: opening a device can have side effects, and opening a
 * FIFO can block.
 */
export function createFileReader(limit: number): (path: string) => FileContent {
  const buffer = Buffer.allocUnsafeSlow(limit + 1)
  return path => {
    const stats = lstatSync(path)
    const mtimeUs = Math.round(stats.mtimeMs * 1000)
    const unread = (problem: Problem, size: number): FileContent => ({
      text: '',
      problem,
      inode: stats.ino,
      mtimeUs,
      size,
    })
    if (!stats.isFile() || stats.nlink !== 1) return unread('not_a_file', stats.size)
    if (stats.size > limit) return unread('too_large', stats.size)
    const fd = openSync(path, flags)
    let length: number
    try {
      length = readSync(fd, buffer, 0, limit + 1, 0)
    } finally {
      closeSync(fd)
    }
    if (length > limit) return unread('too_large', length)
    const text = buffer.toString('utf8', 0, length)
    // Decoding turns invalid bytes into U+FFFD. Few files contain that character, so the full check is rarely needed.
    if (text.includes('\ufffd') && !isUtf8(buffer.subarray(0, length))) return unread('invalid_utf8', length)
    return { text, problem: undefined, inode: stats.ino, mtimeUs, size: length }
  }
}
