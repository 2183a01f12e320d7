import type { Logger } from 'pino'
import type { Element } from './library.ts'
import { NoAnswer, type Session, StanzaRefusal } from './session.ts'
import { bareOf, localOf, ns, resourceOf } from './stanzas.ts'

/** A room that we are in, or want to be in (XEP-0045). */
export interface Room {
  address: string
  /** what people call it */
  name: string
  /** ours */
  nickname: string
  isJoined: boolean
  /** everybody sees who everybody is; only then does its archive say who said what */
  showsAddresses: boolean
  hasArchive: boolean
  /** by nickname: who it is, where we are shown it. A nickname is nobody: the next one to take it may be somebody else */
  occupants: Map<string, string | undefined>
}

export interface Rooms {
  get(address: string): Room | undefined
  all(): readonly Room[]
  join(address: string): Promise<Room>
  /** what a room says of who is in it */
  presence(stanza: Element): void
  /** reads once more what a room is like */
  refresh(room: Room): Promise<void>
}

const joinMs = 30_000
const mostNicknames = 4
/** why we are no longer in: somebody wants us out */
const wereRemoved: ReadonlySet<string> = new Set(['301', '307', '321', '322'])
/** an error of the service looks like a removal, too */
const wasError = '333'

export function createRooms(options: {
  session: Session
  nickname: string
  log: Logger
  /** a room is no longer there for us, and nobody wants us out */
  ended(address: string): void
  /** something that the operator should know, which does not end the connection */
  notice(text: string): void
}): Rooms {
  const { session, log } = options
  const { xml } = session
  const rooms = new Map<string, Room>()
  const joining = new Map<string, PromiseWithResolvers<void>>()

  const refresh = async (room: Room) => {
    const answer = await session.ask('get', room.address, xml('query', { xmlns: ns.info }))
    const info = answer.getChild('query', ns.info)
    const features = new Set(info?.getChildren('feature').map(({ attrs }) => attrs.var))
    room.name = info?.getChild('identity')?.attrs.name || localOf(room.address)
    room.showsAddresses = features.has('muc_nonanonymous')
    room.hasArchive = features.has(ns.mam)
  }

  const enter = async (room: Room, nickname: string): Promise<void> => {
    const entered = Promise.withResolvers<void>()
    joining.set(room.address, entered)
    const late = setTimeout(() => entered.reject(new NoAnswer('The room does not answer.')), joinMs)
    session.ended.catch(entered.reject)
    try {
      room.nickname = nickname
      const presence = { to: `${room.address}/${nickname}` }
      // The archive has what was said before; here it would have no author.
      const history = xml('history', { maxstanzas: '0' })
      await session.send(xml('presence', presence, xml('x', { xmlns: ns.muc }, history)))
      await entered.promise
    } finally {
      clearTimeout(late)
      joining.delete(room.address)
    }
  }

  const removed = (room: Room, codes: ReadonlySet<string | undefined>) => {
    room.isJoined = false
    room.occupants.clear()
    const isWanted = ![...wereRemoved].some(code => codes.has(code)) || codes.has(wasError)
    if (isWanted) {
      log.info({ room: room.address }, 'a room has ended our stay; it is entered again')
      return options.ended(room.address)
    }
    // Whoever throws us out does not want us back at once.
    options.notice(
      `Somebody has removed the assistant from the room ${room.address}. Add the channel again to come back.`,
    )
  }

  const ourselves = (
    room: Room,
    item: Element | undefined,
    codes: ReadonlySet<string | undefined>,
    nickname: string,
    isLeaving: boolean,
  ) => {
    if (isLeaving && codes.has('303')) room.nickname = item?.attrs.nick ?? room.nickname
    else if (isLeaving) removed(room, codes)
    else {
      room.nickname = nickname
      room.isJoined = true
      joining.get(room.address)?.resolve()
    }
  }

  return {
    get: address => rooms.get(address),
    all: () => [...rooms.values()],
    refresh,
    async join(address) {
      const room: Room = {
        ...{ address, name: localOf(address), nickname: options.nickname, isJoined: false },
        ...{ showsAddresses: false, hasArchive: false, occupants: new Map() },
      }
      rooms.set(address, room)
      // To enter a room that is not there would create it.
      await refresh(room)
      for (let attempt = 1; ; attempt++) {
        try {
          await enter(room, options.nickname + '_'.repeat(attempt - 1))
          return room
        } catch (error) {
          const isTaken = error instanceof StanzaRefusal && error.condition === 'conflict'
          if (!isTaken || attempt === mostNicknames) throw error
          log.debug({ room: address, nickname: room.nickname }, 'a nickname is taken; another is tried')
        }
      }
    },
    presence(stanza) {
      const from = stanza.attrs.from ?? ''
      const room = rooms.get(bareOf(from))
      if (!room) return
      if (stanza.attrs.type === 'error')
        return joining.get(room.address)?.reject(new StanzaRefusal(stanza.getChild('error')))
      const about = stanza.getChild('x', ns.mucUser)
      const item = about?.getChild('item')
      const codes = new Set(about?.getChildren('status').map(({ attrs }) => attrs.code))
      const nickname = resourceOf(from)
      const isLeaving = stanza.attrs.type === 'unavailable'
      if (isLeaving) room.occupants.delete(nickname)
      else room.occupants.set(nickname, item?.attrs.jid && bareOf(item.attrs.jid))
      if (codes.has('110')) ourselves(room, item, codes, nickname, isLeaving)
    },
  }
}

/**
 * Who said what an archive keeps. Only a room that shows addresses writes it down, and anybody can put the same element into a
 * message: where there are two, nobody knows which one the room wrote.
 */
export function authorIn(message: Element, room: Room): string | undefined {
  if (!room.showsAddresses) return undefined
  const items = message.getChildren('x', ns.mucUser).flatMap(one => one.getChildren('item'))
  const [item] = items
  return items.length === 1 && item?.attrs.jid ? bareOf(item.attrs.jid) : undefined
}
