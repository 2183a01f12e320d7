import { randomBytes } from 'node:crypto'

/**
 * Creates names for posted files. A name carries its order: milliseconds, then a sequence number within the
 * millisecond. A random suffix keeps two processes of one writer from using the same name.
 */
export function createNames(now: () => number = Date.now, lastSequence = 999_999): () => string {
  let last = 0
  let sequence = 0
  return () => {
    const ms = Math.max(now(), last)
    sequence = ms === last ? sequence + 1 : 0
    last = ms
    // If the clock is set back by an hour, all posts of that hour get the same millisecond.
    if (sequence > lastSequence) {
      last++
      sequence = 0
    }
    return `${last}-${String(sequence).padStart(6, '0')}-${randomBytes(4).toString('hex')}.json`
  }
}

export const isPostedName = (name: string) => name.endsWith('.json') && name.charCodeAt(0) !== 46

/** A valid name fits behind the claim prefix in one file name and is safe to print in a shell or terminal. */
export function isValidName(name: string): boolean {
  if (name.length === 0 || name.length > 120) return false
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    const letter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95
    const digit = code >= 48 && code <= 57
    if (!letter && !digit && (i === 0 || (code !== 45 && code !== 46))) return false
  }
  return true
}

/** Inbox and subdirectory are part of the claimed file name and are parsed from it again. */
export const isValidInbox = (id: string) => /^[A-Za-z0-9_-]{1,64}$/.test(id)
export const isValidSubdirectory = (name: string) => /^[A-Za-z0-9_-]{1,32}$/.test(name)

export const sanitizeName = (name: string) => name.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 100)

export interface ClaimName {
  seq: number
  inbox: string
  subdirectory: string
  name: string
  valid: boolean
}

export const claimName = (seq: number, inbox: string, subdirectory: string, name: string): string =>
  `${seq}~${inbox}~${subdirectory}~${isValidName(name) ? name : `!${sanitizeName(name)}`}`

export function parseClaimName(text: string): ClaimName | undefined {
  const match = /^(\d{1,15})~([A-Za-z0-9_-]+)~([A-Za-z0-9_-]+)~(!?)([A-Za-z0-9._-]+)$/.exec(text)
  if (!match) return undefined
  const [, seq = '', inbox = '', subdirectory = '', mark = '', name = ''] = match
  return { seq: Number(seq), inbox, subdirectory, name, valid: mark === '' }
}

/** The milliseconds that a name starts with, or undefined. */
export function timeOfName(name: string): number | undefined {
  let value = 0
  let i = 0
  for (; i < name.length; i++) {
    const digit = name.charCodeAt(i) - 48
    if (digit < 0 || digit > 9) break
    value = value * 10 + digit
  }
  return i === 13 ? value : undefined
}

/** Orders by time, then by sequence number. Names without one are ordered by mtime, then by inode. */
export function compareFiles(
  a: { name: string; mtimeUs: number; inode: number },
  b: { name: string; mtimeUs: number; inode: number },
): number {
  const timeA = timeOfName(a.name) ?? Math.floor(a.mtimeUs / 1000)
  const timeB = timeOfName(b.name) ?? Math.floor(b.mtimeUs / 1000)
  if (timeA !== timeB) return timeA - timeB
  const numberA = sequenceOfName(a.name)
  const numberB = sequenceOfName(b.name)
  if (numberA !== undefined && numberB !== undefined && numberA !== numberB) return numberA - numberB
  return a.mtimeUs - b.mtimeUs || a.inode - b.inode || (a.name < b.name ? -1 : 1)
}

const sequenced = /^\d{13}-(\d{6})-[0-9a-f]{8}\.json$/
export function sequenceOfName(name: string): number | undefined {
  if (name.length !== 34) return undefined
  const match = sequenced.exec(name)
  return match ? Number(match[1]) : undefined
}
