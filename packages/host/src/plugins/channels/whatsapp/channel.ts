import { randomBytes } from 'node:crypto'
import { pause } from '../../../base/pause.ts'
import { createPace } from '../../../chat/channels/pace.ts'
import type { Channel, ChannelHost, Confirmation } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected, statusOf } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { createDelivery, longestMessage } from './delivery.ts'
import { createGroups } from './groups.ts'
import { addressOf, isOurs, type Ourselves, personOf } from './ids.ts'
import { createTaker, ourselvesOf } from './incoming.ts'
import type { Baileys, Socket } from './library.ts'
import { type Ending, runLink } from './link.ts'
import { silenceCipher } from './quiet.ts'
import { createRecent } from './recent.ts'
import { linkedAccount, openSession, unlinkedSession } from './session.ts'
import type { WhatsAppSettings } from './settings.ts'

const checkMs = 30_000
/** WhatsApp's apps show it for a little longer */
const typingMs = 8000
/** whoever else uses the same keys would be put out at once, and put us out again */
const replacedMs = 60_000
const restartRequired = 515
const loggedOut = 401
const replaced = 440
const foreverMs = 2 ** 31 - 1

type Options = ChannelOptions<WhatsAppSettings>
const libraryOf = (options: Options) => options.library<Baileys>('baileys')

/**
 * Whether WhatsApp would let a device be linked. The keys of the linked one are not used for this: a second connection with
 * them would end the first.
 */
export async function check(options: Options): Promise<string> {
  const library = await libraryOf(options)
  const stop = new AbortController()
  let isAnswered = false
  const ending = await runLink({
    library,
    session: unlinkedSession(library),
    settings: { ...options.settings, phone: undefined },
    log: options.log,
    signal: AbortSignal.any([stop.signal, AbortSignal.timeout(checkMs)]),
    take: async () => {},
    opened: () => {},
    confirm: what => {
      if (!what) return
      isAnswered = true
      stop.abort()
    },
  })
  if (!isAnswered) throw new Error(explained(ending))
  const account = linkedAccount(options.folder(), library)
  return account
    ? `+${personOf(account.id)}${account.name ? ` (${account.name})` : ''}`
    : 'a device that is not linked yet'
}

export function open(options: Options): Channel {
  const { settings, log, now } = options
  const created = now()
  let host: ChannelHost | undefined
  let connection: Connection | undefined
  let current: { socket: Socket; ended: AbortSignal; ourselves: Ourselves } | undefined
  let confirm: Confirmation | undefined
  let problem: string | undefined
  let notBefore = 0
  const typing = new Map<string, NodeJS.Timeout>()
  const recent = createRecent()
  /** WhatsApp does not say how much it takes, and asks the account to wait, whatever chat it is about. */
  const pace = createPace({ now })

  const connected = () => {
    if (!current || current.ended.aborted) throw new Error('WhatsApp is not connected.')
    return current
  }
  const groups = createGroups({ host: () => host, log })
  const delivery = createDelivery({
    connection: connected,
    secret: () => secretOf(host),
    readFile: options.readFile,
    recent,
    limited(ms) {
      connection?.limitedUntil(now() + ms)
      pace.hold(ms)
    },
    now,
  })

  /** Connects until something ends it for longer than a moment. */
  const run = async (to: ChannelHost, signal: AbortSignal, isUp: () => void) => {
    const library = await libraryOf(options)
    const session = openSession(options.folder(), library)
    const unsilence = silenceCipher()
    const take = createTaker({ host: to, library, groups, log, recent })
    try {
      for (;;) {
        const ending = await runLink({
          library,
          session,
          settings,
          log,
          signal,
          take,
          cachedGroupMetadata: groups.of,
          created: groups.follow,
          opened(socket, ended) {
            const ourselves = ourselvesOf(socket)
            if (!ourselves) return
            current = { socket, ended, ourselves }
            isUp()
            groups
              .list()
              .catch(error => log.debug({ reason: String(error) }, 'the groups could not be listed'))
          },
          confirm: what => {
            confirm = what
          },
        })
        if (signal.aborted) return
        // A device that was just linked is told to connect anew.
        if (ending.code === restartRequired) continue
        const isLinked = session.state.creds.account !== undefined
        problem = problemOf(ending, isLinked)
        if (isLinked && ending.code === loggedOut) session.clear()
        if (ending.code === replaced) notBefore = now() + replacedMs
        throw new Error(problem ?? explained(ending))
      }
    } finally {
      unsilence()
      session.close()
    }
  }

  const showTyping = (jid: string, on: boolean) => {
    const presence = on ? 'composing' : 'paused'
    current?.socket
      .sendPresenceUpdate(presence, addressOf(jid))
      .catch(error => log.debug({ jid, reason: String(error) }, 'typing could not be shown'))
  }

  return {
    name: 'whatsapp',
    reaches: isOurs,
    messageLimit: longestMessage,
    pairs: !settings.own,
    pace,
    problem: () => problem,
    status() {
      const status = statusOf(connection, created, now())
      return { ...status, pace: pace.status(), ...(confirm && { confirm }) }
    },
    async connect(given) {
      host = given
      connection = keepConnected({
        async run(signal, isUp) {
          // What only a person can mend is not tried again.
          await pause(problem === undefined ? Math.max(0, notBefore - now()) : foreverMs, signal)
          if (!signal.aborted) await run(given, signal, isUp)
        },
        log,
        now,
      })
    },
    send: delivery.send,
    edit: delivery.edit,
    chats: groups.list,
    typing(jid, on) {
      clearInterval(typing.get(jid))
      typing.delete(jid)
      if (!isOurs(jid)) return
      showTyping(jid, on)
      if (on) typing.set(jid, setInterval(() => showTyping(jid, true), typingMs).unref())
    },
    async disconnect() {
      for (const interval of typing.values()) clearInterval(interval)
      typing.clear()
      await connection?.stop()
    },
  }
}

/** What ids of our messages are made with; made once, so that a message that is sent again has the same. */
function secretOf(host: ChannelHost | undefined): string {
  const kept = host?.recall('secret')
  if (kept !== undefined) return kept
  const made = randomBytes(16).toString('hex')
  host?.remember('secret', made)
  return made
}

const again = 'Link it again: npx hatchway channels add whatsapp'

/** Why it is of no use to connect again; undefined: it is. */
function problemOf({ code, reason }: Ending, isLinked: boolean): string | undefined {
  if (isLinked && code === loggedOut)
    return `WhatsApp has logged this device out: it was removed on the phone, or the phone was not used for 14 days. ${again}`
  if (code === 403)
    return 'WhatsApp has blocked this account. Open WhatsApp on its phone to see why; another account can be linked after: npx hatchway channels remove whatsapp'
  if (code === 405)
    return 'WhatsApp no longer takes the version of the library that this release has. Update Hatchway.'
  if (!isLinked && /QR refs/.test(reason)) return `Nobody has confirmed the code in time. ${again}`
  return undefined
}

const explained = ({ code, reason }: Ending): string =>
  code === replaced
    ? 'Another program uses the keys of this linked device, and has put us out. Stop it, or link this host anew after: npx hatchway channels remove whatsapp'
    : `WhatsApp cannot be reached: ${reason}`
