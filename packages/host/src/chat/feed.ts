import { randomBytes } from 'node:crypto'
import type { ChatEntry } from './history.ts'

/** What somebody who looks at the chats is told as it happens. */
type ChatEvent =
  | { kind: 'entry'; entry: ChatEntry }
  | { kind: 'typing'; jid: string; on: boolean }
  | { kind: 'chats' }

export interface Numbered {
  id: string
  event: ChatEvent
}

/**
 * The live side of the chats. Events are numbered, and the latest are kept for a while, so that a reader whose
 * connection broke gets what it missed; one that was away for longer is told to read the chat again from the store.
 */
export interface Feed {
  /** the event is only made where somebody may get to see it */
  publish(make: () => ChatEvent): void
  /** what came after the event with this id; undefined: that is not known any more */
  since(id: string): readonly Numbered[] | undefined
  /** the id of the latest event */
  position(): string
  subscribe(listener: (numbered: Numbered) => void): () => void
}

const kept = 1000
const keptUnits = 2_000_000
const keptMs = 600_000

export function createFeed(now: () => number): Feed {
  // Ids of an earlier process must not pass for ours.
  const epoch = randomBytes(6).toString('hex')
  const listeners = new Set<(numbered: Numbered) => void>()
  let events: { numbered: Numbered; size: number }[] = []
  let size = 0
  let last = 0
  let watchedUntil = 0

  const isWatched = () => listeners.size > 0 || now() < watchedUntil
  const idOf = (number: number) => `${epoch}-${number}`

  return {
    publish(make) {
      last++
      if (!isWatched()) {
        events = []
        size = 0
        return
      }
      const event = make()
      const numbered = { id: idOf(last), event }
      const units = event.kind === 'entry' ? sizeOf(event.entry) : 0
      events.push({ numbered, size: units })
      size += units
      while (events.length > kept || (size > keptUnits && events.length > 1)) {
        size -= events.shift()?.size ?? 0
      }
      for (const listener of listeners) listener(numbered)
    },
    since(id) {
      const [prefix, number = ''] = id.split('-')
      if (prefix !== epoch || !/^\d{1,15}$/.test(number) || Number(number) > last) return undefined
      const missed = last - Number(number)
      if (missed > events.length) return undefined
      return missed === 0 ? [] : events.slice(-missed).map(({ numbered }) => numbered)
    },
    position: () => idOf(last),
    subscribe(listener) {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
        watchedUntil = now() + keptMs
      }
    },
  }
}

/** A card says it all twice: as text and in its parts; files are named beside the text. */
const sizeOf = ({ text, question, approval, attachments }: ChatEntry): number => {
  const card = question ?? approval ?? attachments
  return card === undefined ? text.length : text.length + JSON.stringify(card).length
}
