import { createEventLog, type EventLog } from '../base/event-log.ts'
import type { ChatEntry } from './history.ts'
import type { LiveTextChange } from './live-text.ts'

/** What somebody who looks at the chats is told as it happens. */
export type ChatEvent =
  | { kind: 'entry'; entry: ChatEntry }
  | { kind: 'typing'; jid: string; on: boolean }
  | { kind: 'chats' }
  | ({ kind: 'live_text' } & LiveTextChange)

/** The live side of the chats. */
export interface Feed extends Pick<EventLog<ChatEvent>, 'since' | 'position' | 'subscribe'> {
  /** the event is only made where somebody may get to see it */
  publish(make: () => ChatEvent): void
  /** what is only of now: whoever comes back later does not miss it */
  broadcast(event: ChatEvent): void
}

const kept = { events: 1000, size: 2_000_000 }
/** for whoever left and may come back */
const keptMs = 600_000

export function createFeed(now: () => number): Feed {
  const log = createEventLog<ChatEvent>(kept)
  let watchedUntil = 0
  return {
    publish(make) {
      if (log.listeners() === 0 && now() >= watchedUntil) return log.skip()
      const event = make()
      log.publish(event, event.kind === 'entry' ? sizeOf(event.entry) : 0)
    },
    broadcast: log.broadcast,
    since: log.since,
    position: log.position,
    subscribe(listener) {
      const end = log.subscribe(listener)
      return () => {
        end()
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
