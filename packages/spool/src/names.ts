import { randomBytes } from 'node:crypto'

/**
 * Posted names carry their order: milliseconds, then a sequence number for posts of one millisecond, then chance so
 * that two processes of one writer never meet.
 */
export function createNames(now: () => number = Date.now, lastSequence = 999_999): () => string {
  let last = 0
  let sequence = 0
  return () => {
    const ms = Math.max(now(), last)
    sequence = ms === last ? sequence + 1 : 0
    last = ms
    // A clock that was set back an hour leaves an hour's posts to one millisecond.
    if (sequence > lastSequence) {
      last++
      sequence = 0
    }
    return `${last}-${String(sequence).padStart(6, '0')}-${randomBytes(4).toString('hex')}.json`
  }
}

export const isPostedName = (name: string) => name.endsWith('.json') && name.charCodeAt(0) !== 46

/** Short enough to fit behind the claim's prefix in one file name; nothing a shell or a terminal could trip over. */
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

/** Inboxes and drops are part of a claimed file's name, and have to be found in it again. */
export const isValidInbox = (id: string) => /^[A-Za-z0-9_-]{1,64}$/.test(id)
export const isValidDrop = (name: string) => /^[A-Za-z0-9_-]{1,32}$/.test(name)

export const harmlessName = (name: string) => name.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 100)

export interface ClaimName {
  seq: number
  inbox: string
  drop: string
  name: string
  valid: boolean
}

export const claimName = (seq: number, inbox: string, drop: string, name: string): string =>
  `${seq}~${inbox}~${drop}~${isValidName(name) ? name : `!${harmlessName(name)}`}`

export function parseClaimName(text: string): ClaimName | undefined {
  const match = /^(\d{1,15})~([A-Za-z0-9_-]+)~([A-Za-z0-9_-]+)~(!?)([A-Za-z0-9._-]+)$/.exec(text)
  if (!match) return undefined
  const [, seq = '', inbox = '', drop = '', mark = '', name = ''] = match
  return { seq: Number(seq), inbox, drop, name, valid: mark === '' }
}

/** The milliseconds a name begins with; undefined where it begins with something else. */
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

/** Where names of one millisecond tell nothing more, the file's own time does, then the order of its inode. */
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
