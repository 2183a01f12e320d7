import type { ChatEvent, FeedEvent } from '@hatchway/host/api-types'
import { useSyncExternalStore } from 'react'
import { createStream, type Stream, type StreamState } from './stream.ts'

/** What the host does, and what is said in the chats. */
export const feed = createStream<FeedEvent>('/api/host/feed', 10_000)
export const chatEvents = createStream<ChatEvent>('/api/events', 60_000)

const useState = (stream: Pick<Stream<unknown>, 'state' | 'onState'>): StreamState =>
  useSyncExternalStore(stream.onState, stream.state)

/** Connected only where nothing is missed. */
export function useConnection(): StreamState {
  const states = [useState(feed), useState(chatEvents)]
  if (states.every(state => state === 'connected')) return 'connected'
  return states.includes('disconnected') ? 'disconnected' : 'connecting'
}
