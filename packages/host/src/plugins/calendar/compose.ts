import ICAL from 'ical.js'
import { timeAt } from './recurrence.ts'

export interface NewEvent {
  uid: string
  title: string
  /** instants, or days as walls of which the last one is not the event's any more */
  start: number
  end: number
  isDate: boolean
  description: string | undefined
  location: string | undefined
  stamp: number
}

/** Times are written in UTC, which no server has to look anything up for. */
export function compose(event: NewEvent): string {
  const component = new ICAL.Component('vevent')
  const utc = (instant: number) => ICAL.Time.fromJSDate(new Date(instant), true)
  const time = (value: number) => (event.isDate ? timeAt(value, true) : utc(value))
  component.addPropertyWithValue('uid', event.uid)
  component.addPropertyWithValue('dtstamp', utc(event.stamp))
  component.addPropertyWithValue('dtstart', time(event.start))
  component.addPropertyWithValue('dtend', time(event.end))
  component.addPropertyWithValue('summary', plainText(event.title))
  if (event.location !== undefined) component.addPropertyWithValue('location', plainText(event.location))
  if (event.description !== undefined)
    component.addPropertyWithValue('description', plainText(event.description))
  const calendar = new ICAL.Component('vcalendar')
  calendar.addPropertyWithValue('version', '2.0')
  calendar.addPropertyWithValue('prodid', '-//Hatchway//Calendar//EN')
  calendar.addSubcomponent(component)
  return textOf(calendar)
}

// The space at the beginning of a line that goes on counts too, which the library forgets.
ICAL.foldLength = 74

export const textOf = (calendar: ICAL.Component): string => `${calendar.toString()}\r\n`

/**
 * Text without characters that some server takes for the end of a line, and what follows for a property of its own;
 * line ends of every kind become the one that is escaped.
 */
const plainText = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replaceAll(/[^\P{Cc}\n\t]/gu, '')
