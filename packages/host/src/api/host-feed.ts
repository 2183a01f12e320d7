import { randomBytes } from 'node:crypto'
import type { ChangeKind } from '../base/metrics/changes.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import type { SessionState } from '../runs/session.ts'
import { commandOf } from './answers.ts'
import type { FeedEventAnswer } from './feed.ts'
import type { Host } from './host.ts'
import { iso } from './route.ts'

export interface NumberedEvent {
  id: string
  /** made when it is first sent, and once for all readers */
  data(): string
}

/**
 * What the host does, live. Events are numbered and the latest are kept, so that a reader whose connection broke gets
 * what it missed.
 *
 *   asleep     nobody looks: nothing is listened to, nothing is kept
 *   watched    somebody looks: commands come as they happen, the rest is looked for twice a second
 *   awaited    the last one left: commands are still kept for a while, for whoever comes back
 *
 * Whoever comes back after it was asleep knows numbers of another epoch, and is told to read everything anew.
 */
export interface HostFeed {
  since(id: string): readonly NumberedEvent[] | undefined
  position(): string
  /** `event` is undefined for what is of now only, and is not kept */
  subscribe(listener: (event: NumberedEvent | FeedEventAnswer) => void): () => void
}

const kept = 2000
const awaitedMs = 600_000
const lookMs = 500

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
  const listeners = new Set<(event: NumberedEvent | FeedEventAnswer) => void>()
  let epoch = newEpoch()
  let events: NumberedEvent[] = []
  let last = 0
  let leave: (() => void) | undefined
  let looking: NodeJS.Timeout | undefined
  let sleeping: NodeJS.Timeout | undefined

  const publish = (make: () => FeedEventAnswer) => {
    last++
    let data: string | undefined
    const event: NumberedEvent = {
      id: `${epoch}-${last}`,
      data: () => {
        data ??= JSON.stringify(make())
        return data
      },
    }
    events.push(event)
    // Taken off in bulk: one at a time would move the whole list for each command.
    if (events.length >= kept * 2) events = events.slice(-kept)
    for (const listener of listeners) listener(event)
  }
  const changed = (what: ChangeKind) => publish(() => ({ kind: 'changed', what }))

  let runs = new Map<string, { group: string; run_kind: 'chat' | 'task'; state: SessionState }>()
  const lookAtRuns = () => {
    const now = new Map(
      (host.agents()?.queue.running() ?? []).map(({ runId, group, kind, state }) => [
        runId,
        { group, run_kind: kind, state },
      ]),
    )
    for (const [run_id, run] of now) {
      if (runs.get(run_id)?.state !== run.state) publish(() => ({ kind: 'run', run_id, ...run }))
    }
    for (const [run_id, run] of runs) {
      if (!now.has(run_id) && run.state !== 'ended') {
        publish(() => ({ kind: 'run', run_id, ...run, state: 'ended' }))
      }
    }
    runs = now
  }

  /** What nobody tells of is known by a few rows that are other than before. */
  let signs: Record<string, string> = {}
  const signsNow = (): Record<string, string> => {
    const occurrences = store.agents.occurrences({ limit: 20 }).map(({ id, status }) => `${id} ${status}`)
    return {
      errors: String(meter.refused()),
      messages: `${store.lastMessageId()} ${store.countPending()}`,
      approvals: store.approvals
        .list({ limit: 20 })
        .map(({ seq, status }) => `${seq} ${status}`)
        .join(),
      questions: store.questions
        .open()
        .map(({ seq, answers }) => `${seq} ${answers.filter(Boolean).length}`)
        .join(),
      deploys: store.deploys
        .list(5)
        .map(({ id, status }) => `${id} ${status}`)
        .join(),
      tasks: occurrences.join(),
      jobs: occurrences.join(),
      status: host.retries.problem() ?? '',
    }
  }
  const lookForChanges = () => {
    const found = new Set(host.changes.take())
    const now = signsNow()
    for (const kind of watchedSigns) if (now[kind] !== signs[kind]) found.add(kind)
    signs = now
    for (const kind of found) changed(kind)
  }

  let ticks = 0
  let before = { handled: 0, refused: 0 }
  const tellTraffic = () => {
    const now = { handled: meter.handled(), refused: meter.refused() }
    const event: FeedEventAnswer = {
      kind: 'traffic',
      at: iso(Date.now()),
      handled: now.handled - before.handled,
      refused: now.refused - before.refused,
    }
    before = now
    for (const listener of listeners) listener(event)
  }

  const look = () => {
    try {
      lookAtRuns()
      lookForChanges()
    } catch (error) {
      // Nothing is missed: the next look finds it.
      if (!isStorageFailure(error)) throw error
      host.retries.failed('looking for changes', error)
    }
    if (++ticks % 2 === 0) tellTraffic()
  }

  const wake = () => {
    clearTimeout(sleeping)
    if (!leave) {
      const heard = host.subscribe(event => publish(() => ({ kind: 'command', command: commandOf(event) })))
      const answered = host.onAnswered(seq => {
        const row = store.command(seq)
        if (row) publish(() => ({ kind: 'command', command: commandOf(row) }))
      })
      leave = () => {
        heard()
        answered()
      }
      host.changes.take()
      signs = signsNow()
      runs = new Map()
    }
    if (looking) return
    before = { handled: meter.handled(), refused: meter.refused() }
    looking = setInterval(look, lookMs).unref()
  }
  const sleep = () => {
    leave?.()
    leave = undefined
    events = []
    epoch = newEpoch()
  }

  return {
    since(id) {
      const [prefix, number = ''] = id.split('-')
      if (prefix !== epoch || !/^\d{1,15}$/.test(number) || Number(number) > last) return undefined
      const missed = last - Number(number)
      if (missed > events.length) return undefined
      return missed === 0 ? [] : events.slice(-missed)
    },
    position: () => `${epoch}-${last}`,
    subscribe(listener) {
      wake()
      listeners.add(listener)
      return () => {
        if (!listeners.delete(listener) || listeners.size > 0) return
        clearInterval(looking)
        looking = undefined
        sleeping = setTimeout(sleep, awaitedMs).unref()
      }
    },
  }
}

const watchedSigns = [
  'errors',
  'messages',
  'approvals',
  'questions',
  'deploys',
  'tasks',
  'jobs',
  'status',
] as const

/** Numbers of an earlier process, or of before it slept, must not pass for ours. */
const newEpoch = () => randomBytes(6).toString('hex')
