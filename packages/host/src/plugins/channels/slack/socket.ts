import type { SocketModeClient } from '@slack/socket-mode'
import { z } from 'zod'
import { pause, within } from '../../../base/pause.ts'
import { callOptions, safeError, silence } from './api.ts'

export type SocketMode = typeof import('@slack/socket-mode')

/** Something that Slack tells. Until it is acknowledged, Slack tells it again. */
export interface Envelope {
  type: string
  body: unknown
  ack(): Promise<void>
}

/** One connection in Socket Mode: https://docs.slack.dev/apis/events-api/using-socket-mode */
export interface Session {
  /** `refresh`: Slack is about to close it, and wants another to be open by then; rejected where it failed */
  over: Promise<'refresh' | 'closed'>
  close(): Promise<void>
}

const helloMs = 30_000
/** Slack does not always end a connection that was closed: after this it is cut. */
const closeMs = 1000

const frameSchema = z.object({
  type: z.string(),
  reason: z.string().optional(),
  payload: z.object({ event: z.object({ type: z.string() }).optional() }).optional(),
})

/**
 * Opens a connection; resolves once Slack has said hello. The library's own reconnecting is off: it can end the process
 * with a rejection nobody sees, and it leaves gaps of several seconds. Frames are looked at before the library
 * sees them, as it trusts them to be well formed.
 */
export async function openSession(options: {
  library: SocketMode
  appToken: string
  server: string
  signal: AbortSignal
  take(envelope: Envelope): void
}): Promise<Session> {
  const { library, appToken, server } = options
  const ending = new AbortController()
  const client = new library.SocketModeClient({
    appToken,
    autoReconnectEnabled: false,
    clientOptions: callOptions(server, AbortSignal.any([options.signal, ending.signal])),
    logger: silence(),
  })
  const over = Promise.withResolvers<'refresh' | 'closed'>()
  const aborted = () => over.resolve('closed')
  options.signal.addEventListener('abort', aborted, { once: true })
  const forget = () => options.signal.removeEventListener('abort', aborted)
  // Also keeps a failure that nobody waits for any more from ending the process.
  over.promise.then(forget, forget)
  let failure: unknown
  client.on('error', (error: unknown) => {
    failure = error
  })
  client.on('disconnected', () => over.resolve('closed'))
  client.on('slack_event', ({ type, body, ack }: Envelope) => options.take({ type, body, ack }))
  watchFrames(client, reason => {
    if (reason === 'link_disabled')
      over.reject(
        new Error('Socket Mode is off for this app. Turn it on at api.slack.com/apps, page Socket Mode.'),
      )
    else over.resolve('refresh')
  })

  let isStarted = false
  const started = client
    .start()
    .then(
      () => undefined,
      (error: unknown) => safeError(error ?? failure, [appToken]),
    )
    .finally(() => {
      isStarted = true
    })
  const close = async () => {
    ending.abort()
    // Asked twice, the library no longer waits for Slack. While it is still connecting, it overhears the first time.
    for (let attempt = 0; attempt < 4; attempt++) {
      await within(closeMs, client.disconnect())
      await within(closeMs, started)
      if (isStarted && client.websocket?.readyState === undefined) return
    }
  }
  const hello = new AbortController()
  try {
    const error = await Promise.race([
      started,
      over.promise.then(() => new Error('Slack ended the connection before it began.')),
      pause(helloMs, hello.signal).then(() => new Error('Slack did not say hello.')),
    ])
    if (error) throw error
    return { over: over.promise, close }
  } catch (error) {
    await close()
    throw error
  } finally {
    hello.abort()
  }
}

/** Lets through what the library can read, and keeps from it that Slack wants another connection: it would hang up at once. */
function watchFrames(client: SocketModeClient, disconnect: (reason: string | undefined) => void): void {
  const [theirs] = client.listeners('ws_message')
  client.removeAllListeners('ws_message')
  client.on('ws_message', (data: unknown, isBinary: boolean) => {
    if (isBinary || typeof data !== 'string') return
    const frame = frameIn(data)
    if (frame?.type === 'disconnect') disconnect(frame.reason)
    else if (frame && (frame.type !== 'events_api' || frame.payload?.event))
      theirs?.call(client, data, isBinary)
  })
}

function frameIn(text: string): z.output<typeof frameSchema> | undefined {
  try {
    return frameSchema.safeParse(JSON.parse(text)).data
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
