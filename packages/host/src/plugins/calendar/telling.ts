import { defaultAnswerBytes } from '../../services/define.ts'
import { dayMs, dayText, type Range } from './days.ts'
import { eventIdOf, markOf } from './event-id.ts'
import type { Instance } from './expand.ts'
import type { ReadingResult } from './reading.ts'
import type { RemoteObject } from './server.ts'
import { timeText } from './times.ts'

/** Events as agents are told of them. */
export const mostEvents = 500
const mostUnreadable = 20
const longestText = 2000
/** what else is in the answer fits into the rest */
const mostBytes = 0.8 * defaultAnswerBytes

interface Place {
  /** what tells the calendar from all others */
  calendar: string
  range: Range
  zone: string
}

/** What takes place in the range, as far as it can be told in one answer. */
export function tellOf(objects: readonly RemoteObject[], results: readonly ReadingResult[], place: Place) {
  const { calendar, range, zone } = place
  const found: { instance: Instance; object: RemoteObject }[] = []
  const unreadable: { event_id: string; title: string; reason: string }[] = []
  let more = false
  objects.forEach((object, index) => {
    const result = results[index]
    if (result?.kind === 'expanded') {
      for (const instance of result.instances) found.push({ instance, object })
      more ||= result.more
    } else {
      const event_id = eventIdOf({ calendar, object: object.name, version: versionOf(object) })
      const reason = result?.kind === 'unreadable' ? result.reason : 'it was not read'
      unreadable.push({ event_id, title: titleIn(object.text), reason })
    }
  })
  found.sort(
    (one, other) => one.instance.start - other.instance.start || one.instance.end - other.instance.end,
  )
  const events: object[] = []
  let next: number | undefined
  let size = 0
  for (const { instance, object } of found) {
    const event = toldEvent(instance, object, place)
    size += Buffer.byteLength(JSON.stringify(event))
    if (events.length === mostEvents || size > mostBytes) {
      next = Math.max(instance.start, range.from)
      break
    }
    events.push(event)
  }
  return {
    events,
    ...(more || next !== undefined ? { more: true } : {}),
    ...(next === undefined ? {} : { next_start: timeText(next, zone) }),
    ...(unreadable.length === 0
      ? {}
      : { unreadable: unreadable.slice(0, mostUnreadable), unreadable_count: unreadable.length }),
  }
}

/** Some servers call the same version weak in one answer and strong in the next. */
export const versionOf = ({ etag }: RemoteObject): string => markOf(etag.replace(/^W\//, ''))

/** Of one time of a series: what is changed elsewhere in the series is no conflict. */
export const versionOfInstance = ({ start, end, title }: Instance): string =>
  markOf(String(start), String(end), title)

function toldEvent(instance: Instance, object: RemoteObject, { calendar, zone }: Place): object {
  const { key, days, start, end, title, location, description, isTentative, unknownZone } = instance
  const series = eventIdOf({ calendar, object: object.name, version: versionOf(object) })
  return {
    ...(key === undefined
      ? { event_id: series }
      : {
          event_id: eventIdOf({ calendar, object: object.name, version: versionOfInstance(instance), key }),
          series_id: series,
        }),
    title: shortened(title),
    ...(days
      ? { start: dayText(days.first), end: dayText(days.end - dayMs), all_day: true }
      : { start: timeText(start, zone), end: timeText(end, zone), all_day: false }),
    ...(location === undefined ? {} : { location: shortened(location) }),
    ...(description === undefined ? {} : { description: shortened(description) }),
    ...(isTentative ? { status: 'tentative' } : {}),
    ...(unknownZone === undefined
      ? {}
      : {
          note: `Its time zone “${shortened(unknownZone, 100)}” is unknown; its times are told as if it were ${zone}.`,
        }),
  }
}

export const shortened = (text: string, longest = longestText): string =>
  (text.length > longest ? `${text.slice(0, longest)}…` : text).toWellFormed()

/** Of an object that could not be read, for people to find it by. */
const titleIn = (text: string): string =>
  shortened(/^SUMMARY[^:\r\n]{0,200}:([^\r\n]{0,200})/im.exec(text)?.[1] ?? '', 200)
