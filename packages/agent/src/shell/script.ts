import { isUtf8 } from 'node:buffer'
import { closeSync, constants, fstatSync, mkdtempSync, openSync, readSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { reasonOf } from '@hatchway/spool'

/** A script's text, read before it runs; or why it cannot be. */
export type ScriptText = { text: string } | { problem: string; missing?: true }

/** As much as the host would read. */
const largest = 200_000

const tooLarge = { problem: `it is larger than the ${largest} bytes that are looked through` }

/** `missing`: there is no such file. One that never ends, or waits for a writer, is no file to look through. */
export function readScript(path: string): ScriptText {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
    return { problem: `it cannot be read (${code})`, ...(code === 'ENOENT' ? { missing: true } : {}) }
  }
  try {
    const about = fstatSync(fd)
    if (!about.isFile()) return { problem: 'it is not a regular file' }
    const buffer = Buffer.alloc(largest + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(fd, buffer, length, buffer.length - length, null)
    return length > largest ? tooLarge : textIn(buffer.subarray(0, length))
  } finally {
    closeSync(fd)
  }
}

/** A script that comes on standard input, to its end; a shell that is kept open and fed bit by bit has none. */
export async function readInput(input: Readable, patienceMs: number): Promise<ScriptText> {
  const parts: Buffer[] = []
  let length = 0
  const timer = setTimeout(() => input.destroy(new Error('its end did not come')), patienceMs)
  try {
    for await (const part of input) {
      parts.push(Buffer.from(part))
      length += part.length
      if (length > largest) return tooLarge
    }
    return textIn(Buffer.concat(parts))
  } catch (error) {
    return { problem: reasonOf(error) }
  } finally {
    clearTimeout(timer)
  }
}

/** What was read from standard input is gone from there; this is where the shell finds it. */
export function keepInput(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'hatchway-shell-')), 'input')
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

const textIn = (bytes: Buffer): ScriptText =>
  isUtf8(bytes) ? { text: bytes.toString() } : { problem: 'it is not text in UTF-8' }
