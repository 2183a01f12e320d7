import { createEventLog, type EventLog } from '../base/event-log.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import { isoOf } from '../store/entities/instant.ts'
import { command, type FeedEventAnswer } from './answers.ts'
import type { Host } from './host.ts'
import { watchHost } from './watch-host.ts'

/**
 * What the host does, live.
 *
 *   asleep     nobody looks: nothing is listened to, nothing is kept
 *   watched    somebody looks: commands come as they happen, the rest is polled twice a second
 *   awaited    the last one left: commands are still kept for a while, for whoever comes back
 *
 * Whoever comes back after it was asleep is told to read everything anew.
 */
export type HostFeed = Pick<EventLog<Text>, 'since' | 'position' | 'subscribe'>

/** The event as JSON, made when it is first sent, and once for all readers. */
type Text = () => string

const kept = { events: 2000, size: Number.POSITIVE_INFINITY }
const awaitedMs = 600_000
const pollMs = 500

const feeds = new WeakMap<Host['meter'], HostFeed>()

/** One for all who look at the host. */
export function feedOf(host: Host): HostFeed {
  const known = feeds.get(host.meter)
  if (known) return known
  const feed = createHostFeed(host)
  feeds.set(host.meter, feed)
  return feed
}

function createHostFeed(host: Host): HostFeed {
  const { meter, store } = host
  const log = createEventLog<Text>(kept)
  const publish = (make: () => FeedEventAnswer) => log.publish(textOf(make))
  const watch = watchHost(host, publish)
  let leave: (() => void) | undefined
  let pollTimer: NodeJS.Timeout | undefined
  let sleeping: NodeJS.Timeout | undefined
  let ticks = 0
  let before = { handled: 0, refused: 0 }

  const publishTraffic = () => {
    const now = { handled: meter.handled(), refused: meter.refused() }
    const [handled, refused] = [now.handled - before.handled, now.refused - before.refused]
    before = now
    log.broadcast(textOf(() => ({ kind: 'traffic', at: isoOf(Date.now()), handled, refused })))
  }
  const poll = () => {
    try {
      watch.poll()
    } catch (error) {
      // Nothing is missed: the next poll finds it.
      if (!isStorageFailure(error)) throw error
      host.retries.failed('polling for changes', error)
    }
    if (++ticks % 2 === 0) publishTraffic()
  }
  const listen = () => {
    const heard = host.subscribe(event => publish(() => ({ kind: 'command', command: command.of(event) })))
    const answered = host.onAnswered(seq => {
      const row = store.command(seq)
      if (row) publish(() => ({ kind: 'command', command: command.of(row) }))
    })
    watch.begin()
    return () => {
      heard()
      answered()
    }
  }
  const wake = () => {
    clearTimeout(sleeping)
    leave ??= listen()
    if (pollTimer) return
    before = { handled: meter.handled(), refused: meter.refused() }
    pollTimer = setInterval(poll, pollMs).unref()
  }
  const sleep = () => {
    leave?.()
    leave = undefined
    log.skip()
  }

  return {
    since: log.since,
    position: log.position,
    subscribe(listener) {
      wake()
      const end = log.subscribe(listener)
      return () => {
        end()
        if (log.listeners() > 0) return
        clearInterval(pollTimer)
        pollTimer = undefined
        sleeping = setTimeout(sleep, awaitedMs).unref()
      }
    },
  }
}

function textOf(make: () => FeedEventAnswer): Text {
  let text: string | undefined
  return () => {
    text ??= JSON.stringify(make())
    return text
  }
}
