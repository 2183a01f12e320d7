import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const largest = 16_777_216

export type FileRead = { text: string } | { missing: true } | { problem: string }

/** A file the host has written, whole by its promise 1; what else may lie there under its name is not waited for. */
export function readHostFile(path: string, limit = largest): FileRead {
  try {
    const fd = openSync(path, flags)
    try {
      const about = fstatSync(fd)
      if (!about.isFile()) return { problem: 'it is not a regular file' }
      if (about.size > limit) return { problem: `it is larger than ${limit} bytes` }
      return { text: readFileSync(fd, 'utf8') }
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
    return code === 'ENOENT' || code === 'ENOTDIR'
      ? { missing: true }
      : { problem: `it cannot be read (${code})` }
  }
}

const deepest = 500

/** The JSON in a text, or undefined: a parser's own message would quote it. */
export function jsonIn(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  return isTooDeep(value) ? undefined : value
}

/** What can be read at any depth can be written only to some: passed on, it would take the whole connection down. */
function isTooDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return true
    level = level.flatMap(node => (typeof node === 'object' && node !== null ? Object.values(node) : []))
  }
  return false
}
