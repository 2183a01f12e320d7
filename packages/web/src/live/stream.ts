import { ask } from '../host/ask.ts'

/**
 * Server-sent events that go on after every interruption. The browser comes back by itself, with the number of the last
 * event it has seen; where it gives up, or where a page that nobody looks at has given its connection back (a browser
 * has only six of them for one server), a new stream asks for what came after that number.
 */
export type StreamState = 'connecting' | 'connected' | 'disconnected'

export interface Stream<Event> {
  open(): void
  close(): void
  state(): StreamState
  onState(heard: () => void): () => void
  on(heard: (event: Event) => void): () => void
}

const againMs = 3000

export function createStream<Event>(path: string, hiddenMs: number): Stream<Event> {
  const listeners = new Set<(event: Event) => void>()
  const watchers = new Set<() => void>()
  let source: EventSource | undefined
  let state: StreamState = 'connecting'
  let last = ''
  let isWanted = false
  let again: ReturnType<typeof setTimeout> | undefined
  let hidden: ReturnType<typeof setTimeout> | undefined

  const become = (next: StreamState) => {
    if (next === state) return
    state = next
    for (const heard of watchers) heard()
  }

  const connect = () => {
    clearTimeout(again)
    source?.close()
    if (!isWanted) return
    become('connecting')
    const opened = new EventSource(last === '' ? path : `${path}?after=${encodeURIComponent(last)}`)
    source = opened
    opened.addEventListener('open', () => become('connected'))
    opened.addEventListener('message', message => {
      if (message.lastEventId !== '') last = message.lastEventId
      const event: Event = JSON.parse(message.data)
      for (const heard of listeners) heard(event)
    })
    opened.addEventListener('error', () => {
      become('disconnected')
      if (opened.readyState !== EventSource.CLOSED) return
      // After an answer that was no stream the browser gives up; asking once tells whether the host still knows us.
      ask('/api/me').catch(() => undefined)
      again = setTimeout(connect, againMs)
    })
  }

  const onVisibility = () => {
    clearTimeout(hidden)
    if (document.visibilityState === 'hidden') {
      hidden = setTimeout(() => {
        source?.close()
        clearTimeout(again)
        become('disconnected')
      }, hiddenMs)
    } else if (source?.readyState === EventSource.CLOSED) connect()
  }

  return {
    open() {
      if (isWanted) return
      isWanted = true
      document.addEventListener('visibilitychange', onVisibility)
      connect()
    },
    close() {
      isWanted = false
      document.removeEventListener('visibilitychange', onVisibility)
      clearTimeout(again)
      clearTimeout(hidden)
      source?.close()
      last = ''
    },
    state: () => state,
    onState(heard) {
      watchers.add(heard)
      return () => watchers.delete(heard)
    },
    on(heard) {
      listeners.add(heard)
      return () => listeners.delete(heard)
    },
  }
}
