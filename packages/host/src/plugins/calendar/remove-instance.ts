import ICAL from 'ical.js'
import { textOf } from './compose.ts'
import { clocksFor, type ExpandOptions, findInstance, type Instance } from './expand.ts'
import { timeAt } from './recurrence.ts'
import { type Part, parse, seriesIn } from './series.ts'
import { utcClock } from './zones.ts'

/** What is left of a calendar object when one time of its series is called off. */
export interface Remainder {
  /** what was called off, as it was */
  instance: Instance
  /** undefined: nothing is left */
  text: string | undefined
}

/** undefined: the object has no such time, or no longer. */
export function removeInstance(
  text: string,
  key: string,
  stamp: number,
  options: Omit<ExpandOptions, 'most'>,
): Remainder | undefined {
  const calendar = parse(text)
  for (const series of seriesIn(calendar, clocksFor(calendar, options))) {
    const instance = findInstance(series, key, options.steps)
    if (!instance) continue
    const { master, overrides } = series
    for (const override of overrides) {
      // A change to all later times stays: they are still held by it.
      if (override.key === key && !(override.isForAllLater && master))
        calendar.removeSubcomponent(override.component)
    }
    if (master) callOff(master, key, stamp)
    return { instance, text: calendar.getFirstSubcomponent('vevent') ? textOf(calendar) : undefined }
  }
  return undefined
}

/** Written as the beginning of the series is, for programs that compare letter by letter. */
function callOff({ component, isDate, clock, zoneName }: Part, key: string, stamp: number): void {
  const instant = Date.parse(key)
  const property = new ICAL.Property('exdate')
  const isInUtc = clock === utcClock
  const time = timeAt(isDate ? instant : clock.wallAt(instant), isDate)
  if (isInUtc && !isDate) time.zone = ICAL.Timezone.utcTimezone
  if (isDate) property.resetType('date')
  if (zoneName !== undefined && !isInUtc) property.setParameter('tzid', zoneName)
  property.setValue(time)
  component.addProperty(property)
  const now = ICAL.Time.fromJSDate(new Date(stamp), true)
  component.updatePropertyWithValue('dtstamp', now)
  component.updatePropertyWithValue('last-modified', now)
  const sequence = Number(component.getFirstPropertyValue('sequence') ?? 0)
  component.updatePropertyWithValue('sequence', Number.isSafeInteger(sequence) ? sequence + 1 : 1)
}
