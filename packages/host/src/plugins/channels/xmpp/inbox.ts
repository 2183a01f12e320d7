import type { Logger } from 'pino'
import { createWorkQueue } from '../../../base/keyed-queue.ts'
import { pause } from '../../../base/pause.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { type Archived, type Archives, createArchives } from './archive.ts'
import { createFiles, type Files } from './files.ts'
import { createHearing, type Hearing } from './hearing.ts'
import type { IdSource, Ids } from './ids.ts'
import type { Element } from './library.ts'
import { authorIn, createRooms, type Room, type Rooms } from './rooms.ts'
import { NoAnswer, type Session, StanzaRefusal } from './session.ts'
import { archiveIdOf, bareOf, jidOf, localOf, ns, resourceOf, timeOf } from './stanzas.ts'

/**
 * What arrives on one connection. Each archive, our own and every room's, has a queue: first what was said while nobody was
 * here, then what is said now. If something cannot be stored the connection ends, and the next one begins after the last
 * place that was noted.
 */
export interface Inbox {
  rooms: Rooms
  source: IdSource
  files: Files
  receive(stanza: Element): void
  /** says that we are here, joins the rooms and catches up */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface InboxOptions {
  session: Session
  host: ChannelHost
  ids: Ids
  nickname: string
  configured: readonly string[]
  /** people who are heard, and those who want to see whether we are here; both outlive a connection */
  people: { accepted: Set<string>; asking: Set<string> }
  /** something that the operator should know, which does not end the connection */
  notice(text: string): void
  log: Logger
  now(): number
}

/** One that came to us alone, or was never archived, has no id there. */
type Arrived = Omit<Archived, 'id'> & { id: string | undefined }
type InOrder = (of: string, work: () => Promise<void>) => Promise<void>

const mostPeople = 1000
const mostRooms = 100
const joinAgainMs = 300_000

export function createInbox(options: InboxOptions): Inbox {
  const { session, host, ids, people, now } = options
  const { xml, me } = session
  const closing = new AbortController()
  const queue = createQueue(session, closing, options.log)
  const archives = createArchives(session, host, now)
  const files = createFiles(session, closing.signal)
  const rooms = createRooms({ ...options, nickname: options.nickname })
  const source = { me, archives, hasArchive: false, room: rooms.get }
  const invitations = createInvitations(host)

  const accept = (person: string) => {
    if (people.accepted.size < mostPeople) people.accepted.add(person)
    if (people.asking.delete(person)) void session.send(xml('presence', { to: person, type: 'subscribed' }))
  }
  const hearing = createHearing({
    ...{ host, ids, source, files },
    accepted: accept,
    invited: room => {
      if (invitations.add(room)) void inRooms.enter(room)
    },
  })
  const shared = { ...options, hearing, rooms, archives, inOrder: queue.inOrder, signal: closing.signal }
  const inRooms = createRoomInbox(shared)
  const direct = createDirectInbox(shared)

  return {
    ...{ rooms, source, files },
    receive(stanza) {
      if (stanza.name === 'presence') {
        if (stanza.attrs.type !== 'subscribe') return rooms.presence(stanza)
        const from = bareOf(stanza.attrs.from ?? '')
        if (people.asking.size < mostPeople) people.asking.add(from)
        if (people.accepted.has(from)) accept(from)
      }
      if (stanza.name !== 'message' || archives.takes(stanza)) return
      if (stanza.attrs.type === 'groupchat') inRooms.arrived(stanza)
      else direct.arrived(stanza)
    },
    async start() {
      const features = await featuresOf(session, me)
      source.hasArchive = features.has(ns.mam)
      // From here on everything arrives, and waits behind what is read from the archives.
      const begun = [
        queue.inOrder(me, async () => {
          if (source.hasArchive) await archives.catchUp(me, direct.take)
        }),
        session.send(xml('presence')),
      ]
      if ((await featuresOf(session, session.domain)).has(ns.carbons))
        begun.push(session.ask('set', undefined, xml('enable', { xmlns: ns.carbons })).then(() => undefined))
      const addresses = new Set([...options.configured, ...invitations.all()])
      begun.push(...[...addresses].map(inRooms.enter))
      await Promise.race([Promise.all(begun), session.ended])
    },
    stop: queue.stop,
  }
}

/** In the order of arrival. After a failure nothing more is taken: a place noted behind it would lose what failed. */
function createQueue(session: Session, closing: AbortController, log: Logger) {
  const queue = createWorkQueue()
  const inOrder: InOrder = async (of, work) => {
    try {
      await queue.run(of, undefined, async () => {
        if (closing.signal.aborted) return
        try {
          await work()
        } catch (error) {
          closing.abort()
          throw error
        }
      })
    } catch (error) {
      log.debug({ reason: String(error) }, 'what arrives is not taken any more')
      session.fail(error instanceof Error ? error : new Error(String(error)))
    }
  }
  return {
    inOrder,
    async stop() {
      closing.abort()
      await queue.stop(new Error('The connection has ended.'))
    },
  }
}

interface Shared extends InboxOptions {
  hearing: Hearing
  rooms: Rooms
  archives: Archives
  inOrder: InOrder
  signal: AbortSignal
}

/** A message that was held back somewhere is older than others whose place was noted already. */
function noteLive(archives: Archives, of: string, { id, at, message }: Arrived): void {
  if (id !== undefined && timeOf(message) === undefined) archives.note(of, { id, at })
}

function createDirectInbox({ session, hearing, rooms, archives, inOrder, now }: Shared) {
  const { me } = session
  const take = async ({ message, id, at }: Arrived) => {
    const sender = bareOf(message.attrs.from ?? me)
    const { type } = message.attrs
    // Not our own words, nor those of a server, nor what somebody whispers in a room: there nobody is known.
    const isPerson = sender !== me && sender.includes('@') && !rooms.get(sender)
    if (!isPerson || message.getChild('x', ns.mucUser)) return
    if (type === 'error' || type === 'headline' || type === 'groupchat') return
    const senderName = localOf(sender)
    await hearing.hear({ message, chat: sender, room: undefined, sender, senderName, archived: id, at })
  }
  const taken = (message: Element) => {
    const item = { message, id: archiveIdOf(message, me), at: timeOf(message) ?? now() }
    return inOrder(me, async () => {
      await take(item)
      noteLive(archives, me, item)
    })
  }
  return {
    take,
    arrived(stanza: Element) {
      const carbon = stanza.getChild('received', ns.carbons) ?? stanza.getChild('sent', ns.carbons)
      if (!carbon) return void taken(stanza)
      // A copy of what another app of our account got or sent. Only our own account can say so.
      const inner = carbon.getChild('forwarded', ns.forward)?.getChild('message')
      if (stanza.attrs.from === me && inner) void taken(inner)
    },
  }
}

function createRoomInbox({ session, host, hearing, rooms, archives, inOrder, signal, ...more }: Shared) {
  const { me } = session
  const { notice, log, now } = more
  const take = async (room: Room, author: string | undefined, { message, id, at }: Arrived) => {
    const nickname = resourceOf(message.attrs.from ?? '')
    if (nickname === '' || author === me) return
    if (author === undefined) log.debug({ room: room.address }, 'somebody without an address was not heard')
    else
      await hearing.hear({
        ...{ message, chat: room.address, room, sender: author, senderName: nickname, archived: id, at },
      })
  }
  const learn = async (room: Room) => {
    await rooms.refresh(room)
    host.knows({ jid: jidOf(room.address), name: room.name, isGroup: true })
    if (!room.showsAddresses)
      notice(
        `The room ${room.address} hides the addresses of its people, so nobody is heard there. Its owner can show them to everybody.`,
      )
  }
  const tryToEnter = async (address: string) => {
    try {
      const room = await rooms.join(address)
      await learn(room)
      if (room.hasArchive)
        await archives.catchUp(address, item => take(room, authorIn(item.message, room), item))
    } catch (error) {
      if (!(error instanceof StanzaRefusal || error instanceof NoAnswer)) throw error
      notice(`The assistant is not in the room ${address}. ${error.message}`)
      void pause(joinAgainMs, signal).then(() => (signal.aborted ? undefined : enter(address)))
    }
  }
  const enter = (address: string) => inOrder(address, () => tryToEnter(address))

  return {
    enter,
    arrived(message: Element) {
      const from = message.attrs.from ?? ''
      const room = rooms.get(bareOf(from))
      if (!room) return
      const nickname = resourceOf(from)
      // The room itself says that it has changed.
      if (nickname === '' && message.getChild('x', ns.mucUser)) void inOrder(room.address, () => learn(room))
      // Whoever has the nickname now said it; later it may be somebody else's.
      const author = room.occupants.get(nickname)
      if (nickname === room.nickname || author === me) return session.reflected(message)
      if (message.getChild('delay', ns.delay)?.attrs.from === room.address) return
      const item = { message, id: archiveIdOf(message, room.address), at: now() }
      void inOrder(room.address, async () => {
        await take(room, author, item)
        noteLive(archives, room.address, item)
      })
    },
  }
}

/** Rooms that people who are heard have invited us to. */
function createInvitations(host: Pick<ChannelHost, 'recall' | 'remember'>) {
  const all = (): string[] => (host.recall('rooms') ?? '').split(' ').filter(Boolean)
  return {
    all,
    /** false: it is known, or there are too many */
    add(room: string): boolean {
      const known = all()
      if (known.includes(room) || known.length >= mostRooms || !/^[^\s@/]+@[^\s@/]+$/.test(room)) return false
      host.remember('rooms', [...known, room].join(' '))
      return true
    },
  }
}

/** What an address can do; nothing, if it does not say. */
export async function featuresOf(session: Session, address: string): Promise<ReadonlySet<string>> {
  try {
    const answer = await session.ask('get', address, session.xml('query', { xmlns: ns.info }))
    const features = answer.getChild('query', ns.info)?.getChildren('feature') ?? []
    return new Set(features.flatMap(({ attrs }) => attrs.var ?? []))
  } catch (error) {
    if (error instanceof StanzaRefusal) return new Set()
    throw error
  }
}
