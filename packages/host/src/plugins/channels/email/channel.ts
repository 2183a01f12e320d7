import { randomBytes } from 'node:crypto'
import { within } from '../../../base/pause.ts'
import type { Channel, ChannelHost } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { isOurs } from './addresses.ts'
import { createAskers } from './askers.ts'
import { parseResults } from './checks.ts'
import { createDelivery, longestMessage } from './delivery.ts'
import { createIntake } from './intake.ts'
import type { PostalMime } from './mail.ts'
import { readMailbox } from './mailbox.ts'
import {
  explained,
  type Imapflow,
  type Nodemailer,
  openImap,
  openTransport,
  type Transport,
} from './servers.ts'
import type { EmailSettings } from './settings.ts'
import { createThreads } from './threads.ts'

/** what is being sent when the channel is disconnected has so long to arrive */
const farewellMs = 1500
/** mails whose header is looked at to see whether `authserv` is the server's name */
const looked = 10

type Options = ChannelOptions<EmailSettings>

export async function check(options: Options): Promise<string> {
  const { settings } = options
  const { address, folder, imap, smtp, authserv } = settings
  const client = openImap(await options.library<Imapflow>('imapflow'), settings)
  // Whatever it is, the command that fails says so, too.
  client.on('error', error => options.log.debug({ reason: error.message }, 'the IMAP connection failed'))
  let checkers: Set<string | undefined>
  try {
    await client.connect()
    const { exists } = await client.mailboxOpen(folder, { readOnly: true })
    const mails =
      exists === 0
        ? []
        : await client.fetchAll(`${Math.max(1, exists - looked + 1)}:*`, {
            headers: ['authentication-results'],
          })
    checkers = new Set(mails.map(({ headers }) => topmostChecker(headers)))
    await client.logout()
  } catch (error) {
    throw new Error(explained(error, 'imap', settings))
  } finally {
    client.close()
  }
  const transport = openTransport(await options.library<Nodemailer>('nodemailer'), settings)
  try {
    await transport.verify()
  } catch (error) {
    throw new Error(explained(error, 'smtp', settings))
  } finally {
    transport.close()
  }
  const others = [...checkers].flatMap(one => (one === undefined ? [] : [one]))
  return [
    `${address}, reading ${folder} at ${imap.host} and sending by ${smtp.host}`,
    ...(others.length > 0 && !others.includes(authserv)
      ? [`no mail there was checked by ${authserv} lately, but by ${others.join(', ')}: is authserv right?`]
      : []),
  ].join('; ')
}

/** Of unfolded headers. */
function topmostChecker(headers: Buffer | undefined): string | undefined {
  const [, value] =
    /^authentication-results:((?:.*\r?\n)(?:[ \t].*\r?\n)*)/i.exec(String(headers ?? '')) ?? []
  return value === undefined ? undefined : parseResults(value)?.server
}

export function open(options: Options): Channel {
  const { settings, log, now } = options
  const created = now()
  let host: ChannelHost | undefined
  let connection: Connection | undefined
  let transport: Promise<Transport> | undefined
  const sending = new Set<Promise<unknown>>()
  const askers = createAskers()

  const connectedHost = (): ChannelHost => {
    if (!host) throw new Error('the channel is not connected')
    return host
  }
  const installation = (): string => {
    const known = connectedHost().recall('installation')
    if (known !== undefined) return known
    const made = randomBytes(5).toString('hex')
    connectedHost().remember('installation', made)
    return made
  }
  const deliver = createDelivery({
    settings,
    transport: () => {
      transport ??= options
        .library<Nodemailer>('nodemailer')
        .then(library => openTransport(library, settings))
      return transport
    },
    threads: () => createThreads(connectedHost()),
    recipients: askers.recipients,
    installation,
    readFile: options.readFile,
    assistant: options.assistant,
    unreached(reason) {
      log.warn({ reason }, 'a mail did not reach all people of its chat')
      connection?.failed(reason)
    },
  })

  const receive = async (to: ChannelHost, signal: AbortSignal, connected: () => void) => {
    const intake = createIntake({
      host: to,
      parser: await options.library<PostalMime>('postal-mime'),
      settings,
      installation,
      received: askers.note,
      refused: reason => connection?.failed(reason),
      log,
    })
    const client = openImap(await options.library<Imapflow>('imapflow'), settings)
    const { folder, poll } = settings
    const mailbox = { client, folder, memory: to, pollMs: poll * 1000, take: intake.take, now }
    try {
      await readMailbox(mailbox, signal, connected)
    } catch (error) {
      throw intake.isOwnFailure(error) ? error : new Error(explained(error, 'imap', settings))
    }
  }

  return {
    name: 'email',
    reaches: isOurs,
    messageLimit: longestMessage,
    showsSender: true,
    pairs: true,
    status: () => connection?.status() ?? { isConnected: false, since: created },
    async connect(given) {
      host = given
      connection = keepConnected({
        run: (signal, connected) => receive(given, signal, connected),
        log,
        now,
      })
    },
    async send(message, part) {
      const sent = deliver(message, part)
      sending.add(sent)
      try {
        return await sent
      } finally {
        sending.delete(sent)
      }
    },
    async disconnect() {
      await connection?.stop()
      await within(farewellMs, Promise.allSettled(sending))
      const opened = await transport
      opened?.close({ force: true })
    },
  }
}
