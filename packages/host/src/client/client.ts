import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { z } from 'zod'
import {
  type EventAnswer,
  eventAnswer,
  type FeedEventAnswer,
  feedEventAnswer,
  type OverviewAnswer,
  overviewAnswer,
} from '../api/answers.ts'
import { type ChatEventAnswer, chatEventAnswer } from '../api/chat-answers.ts'
import { ApiError, failureAnswer } from '../api/failure.ts'
import { announcedSocket } from '../api/socket.ts'
import type { Config } from '../config.ts'
import { DaemonGone, overSocket } from './over-socket.ts'
import type { Method, Transport } from './transport.ts'

/**
 * The API as commands use it, whether a daemon runs or not. Refusals are thrown as `ApiError`.
 *
 *   looking     is a daemon listening? ──▶ outside: every request goes over its socket
 *      │        is the directory free? ──▶ inside: this process holds it until `close`
 *      └──────  neither: one is starting, stopping, or another command is at work; look again for a while
 *
 * A daemon that ends while we are outside sends us back to looking.
 */
export interface Client {
  readonly daemon: boolean
  get<T>(path: string, schema: z.ZodType<T>): Promise<T>
  post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T>
  patch<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T>
  delete<T>(path: string, schema: z.ZodType<T>): Promise<T>
  /** sends a file as it is read; only a daemon takes one */
  upload<T>(path: string, content: Readable, schema: z.ZodType<T>): Promise<T>
  download(path: string): Promise<Readable>
  /** commands as they are handled; resolves when the daemon ends, or at once if none runs */
  events(
    path: string,
    onEvent: (event: EventAnswer) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<void>
  /** what happens in the chats; resolves as `events` does */
  chatEvents(
    path: string,
    onEvent: (event: ChatEventAnswer) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<void>
  /** what the host does; resolves as `events` does. `id` says where to go on: /feed?after=ID */
  feed(
    path: string,
    onEvent: (event: FeedEventAnswer, id: string | undefined) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<void>
  overview(): Promise<OverviewAnswer>
  close(): Promise<void>
}

export interface ConnectOptions {
  /** how long to look while the directory is held by somebody who does not answer */
  patienceMs?: number
  /** fails with `DaemonGone` where none runs: whoever waits for one must not hold the directory it needs */
  daemonOnly?: boolean
}

/** Which host is asked. Its configuration is only read where no daemon runs: reading it takes longer than asking. */
export interface Place {
  data: string
  config(): Promise<Config>
}

/** Opens the host in this process for as long as a command takes, where no daemon runs. */
export type OpenLocal = (config: Config) => Promise<Transport>

const retryMs = 20
/** of a server-sent event; ours are on one line */
const dataField = 'data: '
const idField = 'id: '

export async function connect(
  place: Place,
  { patienceMs = 10_000, daemonOnly = false }: ConnectOptions,
  openLocal: OpenLocal,
): Promise<Client> {
  const options = { patienceMs, daemonOnly, openLocal }
  let transport = await openTransport(place, options)

  const send = async (method: Method, path: string, body: unknown) => {
    try {
      return await transport.request(method, path, body)
    } catch (error) {
      // Asking again is safe where the question never arrived, or changes nothing.
      if (!(error instanceof DaemonGone) || (error.sent && method !== 'GET')) throw error
      transport = await openTransport(place, options)
      return transport.request(method, path, body)
    }
  }
  const read = <T>({ status, text }: { status: number; text: string }, schema: z.ZodType<T>): T => {
    const answer: unknown = JSON.parse(text)
    if (status >= 400) throw new ApiError(failureAnswer.parse(answer).error)
    return schema.parse(answer)
  }
  const ask = async <T>(method: Method, path: string, body: unknown, schema: z.ZodType<T>): Promise<T> =>
    read(await send(method, path, body), schema)

  return {
    get daemon() {
      return transport.daemon
    },
    get: (path, schema) => ask('GET', path, undefined, schema),
    post: (path, body, schema) => ask('POST', path, body, schema),
    patch: (path, body, schema) => ask('PATCH', path, body, schema),
    delete: (path, schema) => ask('DELETE', path, undefined, schema),
    upload: async (path, content, schema) => read(await transport.upload(path, content), schema),
    download: path => transport.download(path),
    events: (path, onEvent, signal = new AbortController().signal) =>
      transport.lines(path, line => onEvent(eventAnswer.parse(JSON.parse(line))), signal),
    chatEvents: (path, onEvent, signal = new AbortController().signal) =>
      transport.lines(
        path,
        line =>
          line.startsWith(dataField)
            ? onEvent(chatEventAnswer.parse(JSON.parse(line.slice(dataField.length))))
            : undefined,
        signal,
      ),
    async feed(path, onEvent, signal = new AbortController().signal) {
      let id: string | undefined
      await transport.lines(
        path,
        line => {
          if (line.startsWith(idField)) id = line.slice(idField.length)
          if (!line.startsWith(dataField)) return
          return onEvent(feedEventAnswer.parse(JSON.parse(line.slice(dataField.length))), id)
        },
        signal,
      )
    },
    overview: () => ask('GET', '/overview', undefined, overviewAnswer),
    close: () => transport.close(),
  }
}

async function openTransport(
  place: Place,
  { patienceMs, daemonOnly, openLocal }: Required<ConnectOptions> & { openLocal: OpenLocal },
): Promise<Transport> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const outside = overSocket(announcedSocket(place.data))
    if (await answers(outside)) return outside
    if (daemonOnly) throw new DaemonGone(false, undefined)
    // Only now: a command that has a daemon to ask need not load the host.
    const { DataDirectoryHeld, heldBy, isFree } = await import('../base/lock.ts')
    if (isFree(place.data)) {
      try {
        return await openLocal(await place.config())
      } catch (error) {
        if (!(error instanceof DataDirectoryHeld) || performance.now() >= deadline) throw error
      }
    } else if (performance.now() >= deadline) {
      throw await heldBy(place.data)
    }
    await sleep(retryMs)
  }
}

async function answers(transport: Transport): Promise<boolean> {
  try {
    return (await transport.request('GET', '/status', undefined)).status === 200
  } catch (error) {
    if (error instanceof DaemonGone) return false
    throw error
  }
}
