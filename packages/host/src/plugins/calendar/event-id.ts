import { createHash } from 'node:crypto'
import { z } from 'zod'

/**
 * What an agent needs to name an event again, sealed in letters it need not understand. It comes back from an agent,
 * so nothing in it is believed: it says which object inside a calendar that was found by other means.
 */
export interface EventId {
  /** which calendar it was seen in */
  calendar: string
  /** the object's name in there, as its address has it */
  object: string
  /** what it looked like when it was seen */
  version: string
  /** which time of the series; undefined: all of it */
  key?: string | undefined
}

const contents = z.tuple([
  z.literal(1),
  z.string().max(64),
  z.string().min(1).max(1024),
  z.string().max(64),
  z
    .string()
    .regex(/^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\.\d{3}Z)?$/)
    .refine(key => !Number.isNaN(Date.parse(key)))
    .nullable(),
])

export const eventIdOf = ({ calendar, object, version, key }: EventId): string =>
  Buffer.from(JSON.stringify([1, calendar, object, version, key ?? null])).toString('base64url')

/** undefined: it is none of ours. */
export function readEventId(text: string): EventId | undefined {
  if (!/^[A-Za-z0-9_-]{1,4096}$/.test(text)) return undefined
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
  const parsed = contents.safeParse(value)
  if (!parsed.success) return undefined
  const [, calendar, object, version, key] = parsed.data
  return { calendar, object, version, key: key ?? undefined }
}

/** Short, and of no use to learn the address or the content from. */
export const markOf = (...words: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 16)

/** Characters of an address that have no meaning in it; some servers understand the rest once they have decoded it. */
const plainName = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+$/

/** The address of an object right inside the calendar; undefined: it would be anywhere else. */
export function objectUrl(calendarUrl: string, object: string): string | undefined {
  if (!plainName.test(object)) return undefined
  let decoded: string
  try {
    decoded = decodeURIComponent(object)
  } catch {
    return undefined
  }
  if (/[/\\%\p{Cc}]/u.test(decoded) || /^\.+$/.test(decoded)) return undefined
  const calendar = new URL(calendarUrl)
  const url = new URL(`./${object}`, calendar)
  return url.href === calendar.href + object ? url.href : undefined
}

/** The object's name, if its address is right inside the calendar. */
export function objectName(calendarUrl: string, href: string): string | undefined {
  if (!URL.canParse(href, calendarUrl)) return undefined
  const { href: url } = new URL(href, calendarUrl)
  if (!url.startsWith(calendarUrl)) return undefined
  const name = url.slice(calendarUrl.length)
  return objectUrl(calendarUrl, name) === undefined ? undefined : name
}
