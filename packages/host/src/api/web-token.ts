import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface WebToken {
  token: string
  /** it did not exist before */
  isNew: boolean
  isToken(given: string): boolean
}

const fileName = 'web-token'
const shape = /^[A-Za-z0-9_-]{43}$/

/**
 * Who has it is the operator. It lies where only the daemon's user can read it; whoever removes the file gives
 * everybody's browser notice.
 */
export function openWebToken(stateDirectory: string): WebToken {
  const path = join(stateDirectory, fileName)
  const kept = read(path)
  const token = kept ?? randomBytes(32).toString('base64url')
  if (kept === undefined) writeFileSync(path, `${token}\n`, { mode: 0o600 })
  chmodSync(path, 0o600)
  return {
    token,
    isNew: kept === undefined,
    isToken: given => equal(given, token),
  }
}

/** The link that lets a browser in, at the address of the console; undefined: there is no token. */
export function signInLink(url: string, stateDirectory: string): string | undefined {
  const token = read(join(stateDirectory, fileName))
  return token === undefined ? undefined : linkWith(url, token)
}

export const linkWith = (url: string, token: string): string => `${url.replace(/\/$/, '')}/?token=${token}`

function read(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim()
    return shape.test(text) ? text : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** In the same time whatever is given, and however long it is. */
const equal = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))
