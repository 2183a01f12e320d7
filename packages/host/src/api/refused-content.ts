import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import type { ErrorContentAnswer } from './answers.ts'

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * The beginning of a refused file, for an operator who asked to see it. It lies in our own directory by now, but it is
 * still whatever somebody else made: opened without following or waiting, and never more than the limit is read.
 */
export function readRefused(path: string, limitBytes: number): ErrorContentAnswer['content'] {
  let fd: number
  try {
    fd = openSync(path, flags)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ELOOP'))
      return null
    throw error
  }
  try {
    const { size } = fstatSync(fd)
    if (!fstatSync(fd).isFile()) return null
    const bytes = Buffer.alloc(Math.min(size, limitBytes))
    const length = readSync(fd, bytes, 0, bytes.length, 0)
    return { base64: bytes.subarray(0, length).toString('base64'), truncated: size > length }
  } finally {
    closeSync(fd)
  }
}
