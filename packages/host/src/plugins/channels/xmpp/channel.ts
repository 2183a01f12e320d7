import { abortable } from '../../../base/pause.ts'
import type { Channel, ChannelHost, KnownChat } from '../../../chat/channels/types.ts'
import { type Connection, keepConnected, statusOf } from '../connection.ts'
import type { ChannelOptions } from '../kind.ts'
import { createDelivery } from './delivery.ts'
import { createFiles } from './files.ts'
import { createIds } from './ids.ts'
import { createInbox, featuresOf, type Inbox } from './inbox.ts'
import type { XmppLibrary } from './library.ts'
import { openSession, type Session, type SessionOptions } from './session.ts'
import type { XmppSettings } from './settings.ts'
import { isOurs, jidOf, localOf, ns } from './stanzas.ts'

type Options = ChannelOptions<XmppSettings>

/** Far below what servers take in one stanza, and as much as anybody reads at once. */
const longestMessage = 10_000
/** Some apps forget that somebody types. */
const typingMs = 20_000

/** What apps may find out about us before they use it. */
const features = [
  ...[ns.info, ns.ping, ns.chatStates, ns.oob, ns.correct],
  ...[ns.retract, ns.reactions, ns.reply, ns.ids, ns.invitation],
]

async function begin(
  { settings, library }: Options,
  more: Pick<SessionOptions, 'signal' | 'receive'>,
): Promise<Session> {
  const { address, password, server } = settings
  const loaded = await library<XmppLibrary>('@xmpp/client')
  return openSession({ library: loaded, address, password, server, features, ...more })
}

export async function check(options: Options): Promise<string> {
  const over = new AbortController()
  const session = await begin(options, { signal: over.signal, receive: () => {} })
  try {
    const own = await featuresOf(session, session.me)
    const service = await createFiles(session, over.signal).service()
    const rooms = options.settings.rooms.map(async room => {
      const its = await featuresOf(session, room)
      if (its.size === 0) return `${room}: there is no such room, or it is closed to us`
      return its.has('muc_nonanonymous')
        ? room
        : `${room}: nobody is heard there, as the room hides the addresses of its people`
    })
    return [
      session.me,
      ...(own.has(ns.mam)
        ? []
        : ['the server keeps no archive: what is said while nobody is here may be lost']),
      ...(service === undefined ? ['the server takes no files'] : []),
      ...(await Promise.all(rooms)),
    ].join('; ')
  } finally {
    over.abort()
    await session.close()
  }
}

export function open(options: Options): Channel {
  const { settings, log, now } = options
  const startedAt = now()
  const ids = createIds()
  const people = { accepted: new Set<string>(), asking: new Set<string>() }
  const typing = new Map<string, NodeJS.Timeout>()
  let host: ChannelHost | undefined
  let connection: Connection | undefined
  let line: { session: Session; inbox: Inbox } | undefined

  const delivery = createDelivery({
    line: () => line && { session: line.session, source: line.inbox.source, files: line.inbox.files },
    memory: () => host,
    ids,
    readFile: options.readFile,
    startedAt,
    limited: ms => connection?.limitedUntil(now() + ms),
  })

  const run = async (to: ChannelHost, signal: AbortSignal, connected: () => void) => {
    const notices: string[] = []
    const notice = (text: string) => {
      log.warn(text)
      notices.push(text)
      connection?.failed(text)
    }
    let inbox: Inbox | undefined
    const session = await begin(options, { signal, receive: stanza => inbox?.receive(stanza) })
    try {
      const nickname = settings.nickname || options.assistant
      const shared = { session, host: to, ids, people, nickname, notice, log, now }
      inbox = createInbox({ ...shared, configured: settings.rooms })
      line = { session, inbox }
      await abortable(inbox.start(), signal)
      connected()
      for (const one of notices) connection?.failed(one)
      await abortable(session.ended, signal)
    } finally {
      line = undefined
      session.fail(new Error('The connection was ended.'))
      await inbox?.stop()
      await session.close()
    }
  }

  const showTyping = (jid: string, isOn: boolean) => {
    delivery
      .typing(jid, isOn)
      .catch(error => log.debug({ jid, reason: String(error) }, 'typing was not shown'))
  }
  const endTyping = (jid: string) => {
    clearInterval(typing.get(jid))
    return typing.delete(jid)
  }

  return {
    name: 'xmpp',
    reaches: isOurs,
    messageLimit: longestMessage,
    pairs: true,
    status: () => statusOf(connection, startedAt, now()),
    async connect(given) {
      host = given
      connection = keepConnected({ run: (signal, connected) => run(given, signal, connected), log, now })
    },
    send: delivery.send,
    edit: delivery.edit,
    chats: async () => (line ? listChats(line.session, line.inbox) : []),
    typing(jid, isOn) {
      const wasOn = endTyping(jid)
      if (isOn) typing.set(jid, setInterval(() => showTyping(jid, true), typingMs).unref())
      if (isOn || wasOn) showTyping(jid, isOn)
    },
    async disconnect() {
      for (const jid of typing.keys()) endTyping(jid)
      await connection?.stop()
    },
  }
}

/** The rooms we are in, and the contacts of the account. */
async function listChats({ ask, xml }: Session, { rooms }: Inbox): Promise<readonly KnownChat[]> {
  const roster = await ask('get', undefined, xml('query', { xmlns: ns.roster }))
  const contacts = roster.getChild('query', ns.roster)?.getChildren('item') ?? []
  return [
    ...rooms.all().map(room => ({ jid: jidOf(room.address), name: room.name, isGroup: true })),
    ...contacts.flatMap(({ attrs: { jid, name } }) =>
      jid?.includes('@') ? { jid: jidOf(jid), name: name || localOf(jid), isGroup: false } : [],
    ),
  ]
}
