/** A calendar as it is on its server, to be called by a name that no other one has. */
export interface Nameable {
  account: string
  /** what people call it; several can be called the same */
  title: string
  /** the last part of its address */
  segment: string
}

/**
 * Its own name; with its account where names collide, or where its own could be taken for such a one; with the last
 * part of its address where that collides too.
 */
export function nameCalendars<Calendar extends Nameable>(
  calendars: readonly Calendar[],
): (Calendar & { name: string })[] {
  const longer = [
    ({ title }: Calendar) => title,
    ({ account, title }: Calendar) => `${account}/${title}`,
    ({ account, title, segment }: Calendar) => `${account}/${title} (${segment})`,
  ]
  const levels = new Map(calendars.map(calendar => [calendar, calendar.title.includes('/') ? 1 : 0]))
  const nameOf = (calendar: Calendar) => longer[levels.get(calendar) ?? 0]?.(calendar) ?? ''
  for (let round = 1; round < longer.length; round++) {
    const names = calendars.map(calendar => nameOf(calendar).toLowerCase())
    calendars.forEach((calendar, index) => {
      if (names.filter(name => name === names[index]).length > 1) levels.set(calendar, round)
    })
  }
  return calendars.map(calendar => ({ ...calendar, name: nameOf(calendar) }))
}

/** Those that the name can mean: by the name they are told by, or by account and name. */
export function findCalendars<Calendar extends Nameable & { name: string }>(
  calendars: readonly Calendar[],
  name: string,
): Calendar[] {
  const wanted = name.trim().toLowerCase()
  const longName = ({ account, title }: Calendar) => `${account}/${title}`.toLowerCase()
  const named = calendars.filter(
    calendar => calendar.name.toLowerCase() === wanted || longName(calendar) === wanted,
  )
  return named.length > 0 ? named : calendars.filter(({ title }) => title.toLowerCase() === wanted)
}
