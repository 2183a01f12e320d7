import { abortable, pause } from '../../../base/pause.ts'
import type { ChannelOptions } from '../kind.ts'
import type { IrcSettings } from './settings.ts'

/** What we use of irc-framework, which has no types of its own. */
export interface IrcClient {
  user: { nick: string }
  network: { name: string; cap: { isEnabled(name: string): boolean } }
  command_handler: { dispatch(message: unknown): void }
  connection: { end(data: null, isBroken: boolean): void }
  connect(options: Record<string, unknown>): void
  caseLower(text: string): string
  join(channel: string): void
  say(target: string, text: string): void
  raw(...words: readonly string[]): void
  changeNick(nickname: string): void
  whois(nickname: string, answer: (about: { account?: string }) => void): void
  quit(): void
  on(event: string, listener: (event: IrcEvent) => void): void
}
type Text = 'nick' | 'new_nick' | 'kicked' | 'channel' | 'target' | 'message' | 'reason' | 'error' | 'type'
export interface IrcEvent extends Partial<Record<Text, string>> {
  account?: string | false
  from_server?: boolean
  tags?: Record<string, string>
}

const connectMs = 30_000
const closeMs = 1000
/** A line has 512 bytes; before the text stand who says it and to whom. */
const lineBytes = 350

export type Line = Awaited<ReturnType<typeof openLine>>

/** One connection, from signing in to its end. */
export async function openLine({ library, settings }: ChannelOptions<IrcSettings>, signal: AbortSignal) {
  const { server, port, tls, nickname, account, password } = settings
  const irc = await library<{ default: { Client: new () => IrcClient } }>('irc-framework')
  const client = new irc.default.Client()
  const ended = Promise.withResolvers<never>()
  // Whoever waits for it hears of it; nobody has to.
  ended.promise.catch(() => undefined)
  const fail = (reason: string) => ended.reject(new Error(reason))
  // What the library throws at an odd line would end the daemon.
  const { dispatch } = client.command_handler
  client.command_handler.dispatch = message => {
    try {
      dispatch.call(client.command_handler, message)
    } catch (error) {
      fail(`The server said what the library does not understand: ${String(error)}.`)
    }
  }
  const closed = Promise.withResolvers<boolean>()
  client.on('socket close', error => {
    const reason = error instanceof Error ? `cannot be reached: ${error.message}` : 'has ended the connection'
    fail(`The server ${reason}.`)
    closed.resolve(true)
  })
  client.on('sasl failed', ({ reason }) =>
    fail(`The network does not take this account with this password (${reason}).`),
  )
  client.on('nick in use', () => client.changeNick(`${client.user.nick}_`))
  const registered = Promise.withResolvers<void>()
  client.on('registered', () => registered.resolve())
  client.connect({
    ...{ host: server, port, tls, rejectUnauthorized: true, auto_reconnect: false },
    ...{ nick: nickname, username: 'hatchway', gecos: 'Hatchway', version: 'Hatchway' },
    ...{ message_max_length: lineBytes, sasl_disconnect_on_fail: true },
    ...(account !== '' && { account: { account, password } }),
  })
  const close = async () => {
    client.quit()
    const late = new AbortController()
    const isClosed = await Promise.race([closed.promise, pause(closeMs, late.signal).then(() => false)])
    late.abort()
    if (!isClosed) client.connection.end(null, true)
  }
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(connectMs)])
    await abortable(Promise.race([registered.promise, ended.promise]), either)
  } catch (error) {
    await close()
    throw error
  }
  return {
    client,
    ended: ended.promise,
    close,
    hasAccounts: ['account-tag', 'extended-join'].some(one => client.network.cap.isEnabled(one)),
  }
}
