import { setTimeout as sleep } from 'node:timers/promises'
import type {
  Client,
  CommandAnswer,
  FeedEventAnswer,
  OverviewAnswer,
  WholeCommandAnswer,
} from '@hatchway/host/api'

/**
 * Looks at a daemon for as long as it is wanted, across its restarts.
 *
 *   looking   no daemon answers: another look every half second; the data directory is never held meanwhile
 *   live      commands come as they are handled, and their answers; how the host is, every two seconds
 *
 * Where the daemon knows what was missed in between, it is told that; otherwise all since the last one known is read.
 */
export interface Watching {
  /** ends when it is no longer wanted */
  ended: Promise<void>
  whole(seq: number): Promise<WholeCommandAnswer>
}

export interface WatchOptions {
  api: Pick<typeof import('@hatchway/host/api'), 'commandsAnswer' | 'wholeCommandAnswer' | 'DaemonGone'>
  connect(): Promise<Client>
  /** what to read when more is missed than the daemon can tell */
  past(): URLSearchParams
  onLive(): void
  onGone(): void
  onCommand(command: CommandAnswer): void
  onTraffic(traffic: Extract<FeedEventAnswer, { kind: 'traffic' }>): void
  onOverview(overview: OverviewAnswer): void
  signal: AbortSignal
}

const lookMs = 500
const overviewMs = 2000

export function watch(options: WatchOptions): Watching {
  const { api, signal } = options
  let client: Client | undefined
  let last: string | undefined

  /** Whether the daemon has ended, or we have enough: neither is a failure. */
  const isOver = (error: unknown) =>
    signal.aborted ||
    error instanceof api.DaemonGone ||
    (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')

  const orGone = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (!isOver(error)) throw error
      return undefined
    }
  }

  const lookAround = async (live: Client, until: AbortSignal) => {
    while (!until.aborted) {
      const overview = await live.overview()
      if (!until.aborted) options.onOverview(overview)
      await sleep(overviewMs, undefined, { signal: until }).catch(() => {})
    }
  }

  const listen = (live: Client, until: AbortSignal) => {
    const query = new URLSearchParams(last === undefined ? {} : { after: last })
    let isFirst = last === undefined
    return live.feed(
      `/feed?${query}`,
      async (event, id) => {
        last = id
        switch (event.kind) {
          case 'hello':
            if (isFirst || !event.complete) {
              for (const command of await live.get(`/commands?${options.past()}`, api.commandsAnswer)) {
                options.onCommand(command)
              }
            }
            isFirst = false
            options.onLive()
            break
          case 'command':
            options.onCommand(event.command)
            break
          case 'traffic':
            options.onTraffic(event)
        }
      },
      until,
    )
  }

  const follow = async () => {
    while (!signal.aborted) {
      client = await orGone(options.connect)
      const live = client
      if (live) {
        const parted = new AbortController()
        const until = AbortSignal.any([signal, parted.signal])
        await Promise.all([
          orGone(() => listen(live, until)).finally(() => parted.abort()),
          orGone(() => lookAround(live, until)),
        ])
      } else options.onGone()
      // Also where it only sent us away because we were slow, which would be at once again.
      await sleep(lookMs, undefined, { signal }).catch(() => {})
    }
  }

  return {
    ended: follow(),
    whole(seq) {
      if (!client) throw new api.DaemonGone(false, undefined)
      return client.get(`/commands/${seq}`, api.wholeCommandAnswer)
    },
  }
}
