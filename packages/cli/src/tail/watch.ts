import type {
  Client,
  CommandAnswer,
  FeedEventAnswer,
  OverviewAnswer,
  WholeCommandAnswer,
} from '@hatchway/host/api'
import { pause } from '../poll.ts'
import { type Api, url } from '../session.ts'

/**
 * Follows a daemon across its restarts, until it is aborted.
 *
 *   connecting   no daemon answers: try again every half second, without ever holding the data directory
 *   live         commands and their answers arrive as events; the overview is read every two seconds
 *
 * After a reconnection the daemon sends what was missed. If it no longer has that, the commands are read again.
 */
export interface Watch {
  ended: Promise<void>
  whole(seq: number): Promise<WholeCommandAnswer>
}

export interface WatchOptions {
  api: Pick<Api, 'commandsAnswer' | 'wholeCommandAnswer' | 'DaemonGone'>
  connect(): Promise<Client>
  /** which commands to read when the daemon cannot send what was missed */
  missed(): { after: number; limit: number }
  onLive(): void
  onGone(): void
  onCommand(command: CommandAnswer): void
  onTraffic(traffic: Extract<FeedEventAnswer, { kind: 'traffic' }>): void
  onOverview(overview: OverviewAnswer): void
  signal: AbortSignal
}

const reconnectMs = 500
const overviewMs = 2000

export function watch(options: WatchOptions): Watch {
  const { api, signal } = options
  let client: Client | undefined
  let lastEvent: string | undefined

  /** Undefined if the daemon has ended or we are aborted, which are no failures. */
  const unlessGone = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      const isReset = error instanceof Error && 'code' in error && error.code === 'ECONNRESET'
      if (!signal.aborted && !isReset && !(error instanceof api.DaemonGone)) throw error
      return undefined
    }
  }

  const readOverviews = async (live: Client, until: AbortSignal) => {
    while (!until.aborted) {
      const overview = await live.overview()
      if (!until.aborted) options.onOverview(overview)
      await pause(overviewMs, until)
    }
  }

  const readFeed = (live: Client, until: AbortSignal) => {
    let isFirst = lastEvent === undefined
    return live.feed(
      url`/feed?${{ after: lastEvent }}`,
      async (event, id) => {
        lastEvent = id
        if (event.kind === 'command') options.onCommand(event.command)
        if (event.kind === 'traffic') options.onTraffic(event)
        if (event.kind !== 'hello') return
        if (isFirst || !event.complete) {
          const missed = await live.get(url`/commands?${options.missed()}`, api.commandsAnswer)
          for (const command of missed) options.onCommand(command)
        }
        isFirst = false
        options.onLive()
      },
      until,
    )
  }

  const follow = async () => {
    while (!signal.aborted) {
      client = await unlessGone(options.connect)
      const live = client
      if (live) {
        const ended = new AbortController()
        const until = AbortSignal.any([signal, ended.signal])
        await Promise.all([
          unlessGone(() => readFeed(live, until)).finally(() => ended.abort()),
          unlessGone(() => readOverviews(live, until)),
        ])
      } else options.onGone()
      // Also if the daemon disconnected us for being slow, which would happen again at once.
      await pause(reconnectMs, signal)
    }
  }

  return {
    ended: follow(),
    whole(seq) {
      if (!client) throw new api.DaemonGone(false, undefined)
      return client.get(url`/commands/${seq}`, api.wholeCommandAnswer)
    },
  }
}
