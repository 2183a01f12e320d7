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
 * Reads a claimed file whole, once, and never more than `limit` bytes of it. The name is already out of its writer's
 * reach, so what is looked at first is what is opened; the content may still change, so it is read into our own
 * memory in a single call and not looked at again. Nothing but a regular file with one link is opened at all: opening
 * a device can have effects, and a FIFO would wait (lesson 5).
 */
export function createReader(limit: number): (path: string) => FileContent {
  const buffer = Buffer.allocUnsafeSlow(limit + 1)
  return path => {
    const outside = lstatSync(path)
    const mtimeUs = Math.round(outside.mtimeMs * 1000)
    const unread = (problem: Problem, size: number): FileContent => ({
      text: '',
      problem,
      inode: outside.ino,
      mtimeUs,
      size,
    })
    if (!outside.isFile() || outside.nlink !== 1) return unread('not_a_file', outside.size)
    if (outside.size > limit) return unread('too_large', outside.size)
    const fd = openSync(path, flags)
    let length: number
    try {
      length = readSync(fd, buffer, 0, limit + 1, 0)
    } finally {
      closeSync(fd)
    }
    if (length > limit) return unread('too_large', length)
    const text = buffer.toString('utf8', 0, length)
    // Whatever is not UTF-8 has become such a character; few files have one of their own.
    if (text.includes('\ufffd') && !isUtf8(buffer.subarray(0, length))) return unread('invalid_utf8', length)
    return { text, problem: undefined, inode: outside.ino, mtimeUs, size: length }
  }
}
