import { randomBytes } from 'node:crypto'

/**
 * Events for readers that come and go. They are numbered, and the latest are kept, so that a reader whose connection
 * broke gets what it missed; one that was away for longer is told to read everything again.
 */
export interface EventLog<Event> {
  /** `size` counts towards what is kept */
  publish(event: Event, size?: number): void
  /** tells whoever listens, and is not kept */
  broadcast(event: Event): void
  /** counts what nobody gets to see: whoever comes back has missed it */
  skip(): void
  /** what came after the event with this id; undefined: that is not known any more */
  since(id: string): readonly Numbered<Event>[] | undefined
  /** the id of the latest event */
  position(): string
  subscribe(listener: (numbered: Numbered<Event>) => void): () => void
  listeners(): number
}

export interface Numbered<Event> {
  /** undefined: it is of now only, and cannot be asked for again */
  id: string | undefined
  event: Event
}

export function createEventLog<Event>(kept: { events: number; size: number }): EventLog<Event> {
  // Ids of an earlier process must not pass for ours.
  const epoch = randomBytes(6).toString('hex')
  const listeners = new Set<(numbered: Numbered<Event>) => void>()
  let events: (Numbered<Event> & { size: number })[] = []
  let total = 0
  let last = 0

  const send = (numbered: Numbered<Event>) => {
    for (const listener of listeners) listener(numbered)
  }
  const forgetOldest = () => {
    let count = Math.max(0, events.length - kept.events)
    total -= events.slice(0, count).reduce((sum, { size }) => sum + size, 0)
    while (total > kept.size && count < events.length - 1) total -= events[count++]?.size ?? 0
    events = events.slice(count)
  }
  const idOf = (number: number) => `${epoch}-${number}`

  return {
    publish(event, size = 0) {
      const numbered = { id: idOf(++last), event, size }
      events.push(numbered)
      total += size
      // Taken off in bulk: one at a time would move the whole list for each event.
      if (events.length >= kept.events * 2 || total > kept.size) forgetOldest()
      send(numbered)
    },
    broadcast: event => send({ id: undefined, event }),
    skip() {
      last++
      events = []
      total = 0
    },
    since(id) {
      const [prefix, number = ''] = id.split('-')
      if (prefix !== epoch || !/^\d{1,15}$/.test(number) || Number(number) > last) return undefined
      const missed = last - Number(number)
      if (missed > Math.min(events.length, kept.events)) return undefined
      return missed === 0 ? [] : events.slice(-missed)
    },
    position: () => idOf(last),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    listeners: () => listeners.size,
  }
}
