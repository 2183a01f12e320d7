import type { Logger } from 'pino'
import { pause } from '../../base/pause.ts'
import { backoff } from '../../base/retry.ts'
import type { ChannelStatus } from '../../chat/channels/types.ts'

/**
 * Keeps a connection to a platform up. `run` connects, calls `connected`, and goes on until the connection ends or
 * `signal` is aborted; whatever way it ends, it is begun anew after a pause that grows.
 */
export interface Connection {
  status(): ChannelStatus
  /** the platform has asked to wait */
  limitedUntil(at: number): void
  /** something went wrong that did not end the connection */
  failed(error: unknown): void
  stop(): Promise<void>
}

const pauseAfter = backoff({ firstMs: 500, longestMs: 60_000 })

/** How the account is, by its connection; `since`: when there was none yet. */
export function statusOf(connection: Connection | undefined, since: number, now: number): ChannelStatus {
  const { limitedUntil, ...status } = connection?.status() ?? { isConnected: false, since }
  return limitedUntil !== undefined && limitedUntil > now ? { ...status, limitedUntil } : status
}

export function keepConnected(options: {
  run(signal: AbortSignal, connected: () => void): Promise<void>
  log: Logger
  now(): number
}): Connection {
  const { log, now } = options
  const closing = new AbortController()
  let status: ChannelStatus = { isConnected: false, since: now() }
  let failures = 0

  const over = (error: unknown) => {
    const reason = error instanceof Error ? error.message : error === undefined ? undefined : String(error)
    if (status.isConnected) log.warn({ reason }, 'the connection to a platform has ended; it is made again')
    else if (reason !== status.lastError)
      log.warn({ reason }, 'a platform cannot be reached; it is tried again')
    status = {
      isConnected: false,
      since: status.isConnected ? now() : status.since,
      lastError: reason ?? status.lastError,
    }
  }
  const connected = () => {
    failures = 0
    status = { isConnected: true, since: now() }
  }
  const loop = async () => {
    while (!closing.signal.aborted) {
      try {
        await options.run(closing.signal, connected)
        over(undefined)
      } catch (error) {
        if (!closing.signal.aborted) over(error)
      }
      if (!closing.signal.aborted) await pause(pauseAfter(++failures), closing.signal)
    }
  }
  const ended = loop()
  return {
    status: () => status,
    limitedUntil: at => {
      status = { ...status, limitedUntil: at }
    },
    failed: error => {
      status = { ...status, lastError: error instanceof Error ? error.message : String(error) }
    },
    async stop() {
      closing.abort()
      await ended
    },
  }
}
