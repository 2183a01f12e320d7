import {
  calendarQuery,
  createAccount,
  createCalendarObject,
  deleteCalendarObject,
  propfind,
  updateCalendarObject,
} from 'tsdav'
import { ServiceRefusal } from '../../services/define.ts'
import { createDavFetch } from './dav-fetch.ts'
import { dayMs, type Range } from './days.ts'
import { objectName } from './event-id.ts'
import type { Nameable } from './names.ts'
import { hasStatus, ServerProblem } from './problems.ts'
import type { CalendarAccount } from './settings.ts'

export interface RemoteCalendar extends Nameable {
  url: string
  description: string | undefined
  isReadonly: boolean
}

/** A calendar object as it is now. */
export interface RemoteObject {
  /** its name inside the calendar */
  name: string
  etag: string
  text: string
}

/** One account on its server, for the length of one call. */
export interface CalendarServer {
  calendars(): Promise<RemoteCalendar[]>
  objects(calendar: RemoteCalendar, range: Range): Promise<RemoteObject[]>
  /** undefined: there is none */
  read(url: string, name: string): Promise<RemoteObject | undefined>
  /** false: there is one of that name already */
  create(calendar: RemoteCalendar, name: string, text: string): Promise<boolean>
  replace(url: string, etag: string, text: string): Promise<void>
  remove(url: string, etag: string): Promise<void>
}

export interface ServerOptions {
  name: string
  account: CalendarAccount
  password: string
  signal: AbortSignal
  /** where each account's calendars were found, for the next call */
  homes: Map<string, string>
}

const mostObjects = 5000

export function openServer({ name, account, password, signal, homes }: ServerOptions): CalendarServer {
  const { url, username } = account
  const fetch = createDavFetch({ account: name, url, username, password, signal })

  /** The library's own errors quote the server's answer, which is nobody's business. */
  const asked = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof ServiceRefusal) throw error
      throw new ServerProblem(
        'service_failed',
        `What the server of the calendar account “${name}” answers is not understood. The operator has to look whether its address is that of a CalDAV server.`,
      )
    }
  }

  /** What failed on the way may have got there all the same. */
  const written = <Answer>(work: () => Promise<Answer>): Promise<Answer> =>
    asked(async () => {
      try {
        return await work()
      } catch (error) {
        const isSure = !(error instanceof ServerProblem) || (error.status !== undefined && error.status < 500)
        if (isSure || error.status === 507) throw error
        const advice = 'It may have been done all the same: list the events before asking again.'
        throw new ServerProblem(error.code, `${error.message} ${advice}`, error.status)
      }
    })

  /** At the address itself, or else where the server's name says that it is. */
  const discover = async (): Promise<string> => {
    const about = { accountType: 'caldav' as const, serverUrl: url }
    const homeOf = async (rootUrl?: string) => {
      const found = await createAccount({ account: rootUrl ? { ...about, rootUrl } : about, fetch })
      return found.homeUrl ?? url
    }
    try {
      return await homeOf(url)
    } catch (error) {
      // Not after a refused password: asked again and again, servers lock the account.
      const isFinal = error instanceof ServerProblem && !hasStatus(error, 400, 403, 404, 405, 410, 501)
      if (signal.aborted || isFinal) throw error
      return await homeOf()
    }
  }

  const listIn = async (home: string): Promise<RemoteCalendar[]> => {
    const responses = await propfind({
      url: home,
      props: {
        'd:displayname': {},
        'd:resourcetype': {},
        'd:current-user-privilege-set': {},
        'c:calendar-description': {},
        'c:supported-calendar-component-set': {},
      },
      depth: '1',
      fetch,
    })
    return responses.flatMap(({ href, props }) => {
      if (href === undefined || !isForEvents(props)) return []
      const address = new URL(href, home)
      if (!address.pathname.endsWith('/')) address.pathname += '/'
      const segment = segmentOf(address)
      const title = nameText(textOf(props?.displayname)) ?? nameText(segment) ?? 'calendar'
      const isReadonly = account.readonly || !mayWrite(props)
      return [
        {
          account: name,
          url: address.href,
          title,
          segment,
          isReadonly,
          description: textOf(props?.calendarDescription),
        },
      ]
    })
  }

  const isShown = ({ title, segment }: RemoteCalendar): boolean =>
    account.calendars?.some(shown => shown === title || shown === segment) ?? true

  return {
    calendars: () =>
      asked(async () => {
        const known = homes.get(name)
        try {
          if (known !== undefined) return (await listIn(known)).filter(isShown)
        } catch (error) {
          if (!hasStatus(error, 403, 404, 405, 410)) throw error
          homes.delete(name)
        }
        const home = await discover()
        const found = await listIn(home)
        homes.set(name, home)
        return found.filter(isShown)
      }),

    objects: (calendar, range) =>
      asked(async () => {
        // Servers take whole days and times without a zone to be in UTC; what is too much is left out later.
        const time = (instant: number) => new Date(instant).toISOString().replaceAll(/[-:]|\.\d+/g, '')
        const within = { start: time(range.from - dayMs), end: time(range.to + dayMs) }
        const responses = await calendarQuery({
          url: calendar.url,
          props: { 'd:getetag': {}, 'c:calendar-data': {} },
          filters: {
            'comp-filter': {
              _attributes: { name: 'VCALENDAR' },
              'comp-filter': { _attributes: { name: 'VEVENT' }, 'time-range': { _attributes: within } },
            },
          },
          depth: '1',
          fetch,
        })
        if (responses.length > mostObjects) {
          throw new ServiceRefusal(
            'answer_too_large',
            `More than ${mostObjects} events and series in that time. Ask for fewer days.`,
          )
        }
        return responses.flatMap(({ href, props }) => {
          const object = objectName(calendar.url, href ?? '')
          const text = textOf(props?.calendarData)
          return object === undefined || text === undefined
            ? []
            : [{ name: object, etag: textOf(props?.getetag) ?? '', text }]
        })
      }),

    read: (url, object) =>
      asked(async () => {
        try {
          // Packed on the way, the answer would have another tag with some servers.
          const response = await fetch(url, {
            headers: { accept: 'text/calendar', 'accept-encoding': 'identity' },
          })
          return { name: object, etag: response.headers.get('etag') ?? '', text: await response.text() }
        } catch (error) {
          if (hasStatus(error, 404, 410)) return undefined
          throw error
        }
      }),

    create: (calendar, object, text) =>
      written(async () => {
        try {
          await createCalendarObject({
            calendar: { url: calendar.url },
            filename: object,
            iCalString: text,
            fetch,
          })
          return true
        } catch (error) {
          if (hasStatus(error, 412)) return false
          throw error
        }
      }),

    replace: (url, etag, text) =>
      written(async () => {
        await updateCalendarObject({ calendarObject: { url, etag, data: text }, fetch })
      }),

    remove: (url, etag) =>
      written(async () => {
        await deleteCalendarObject({ calendarObject: { url, etag }, fetch })
      }),
  }
}

type Properties = Readonly<Record<string, unknown>> | undefined

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** The library makes numbers of names that look like one, and an object of text in CDATA. */
function textOf(value: unknown): string | undefined {
  const inner = isRecord(value) ? value._cdata : value
  if (typeof inner !== 'string' && typeof inner !== 'number' && typeof inner !== 'boolean') return undefined
  const text = String(inner).trim()
  return text === '' ? undefined : text
}

const longestName = 200

/** Whoever shares a calendar chooses its name; it must fit into a line and be the same when it comes back. */
const nameText = (text: string | undefined): string | undefined =>
  text?.toWellFormed().replaceAll(/\p{C}/gu, ' ').replaceAll(/\s+/g, ' ').trim().slice(0, longestName) ||
  undefined

/** The elements of the name inside; one alone is no list. */
const inside = (value: unknown, name: string): Record<string, unknown>[] =>
  isRecord(value) ? [value[name]].flat().filter(isRecord) : []

function isForEvents(props: Properties): boolean {
  if (!isRecord(props?.resourcetype) || !('calendar' in props.resourcetype)) return false
  const kinds = inside(props.supportedCalendarComponentSet, 'comp').map(({ _attributes }) =>
    isRecord(_attributes) ? _attributes.name : undefined,
  )
  return kinds.length === 0 || kinds.includes('VEVENT')
}

/** Where the server does not tell, one finds out by trying. */
function mayWrite(props: Properties): boolean {
  const rights = inside(props?.currentUserPrivilegeSet, 'privilege').flatMap(right => Object.keys(right))
  return rights.length === 0 || ['all', 'write', 'writeContent', 'bind'].some(right => rights.includes(right))
}

function segmentOf(address: URL): string {
  const segment = address.pathname.split('/').filter(Boolean).at(-1) ?? ''
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
