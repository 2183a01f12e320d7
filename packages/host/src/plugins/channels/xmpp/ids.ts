import type { Archives } from './archive.ts'
import type { Element } from './library.ts'
import { authorIn, type Room } from './rooms.ts'
import { bareOf, externalIdOf, resourceOf, sendersIdOf } from './stanzas.ts'

/**
 * A message has two ids: its sender's, by which it is corrected, and the chat's, by which it is answered, reacted to and taken
 * back. Which belong together is known of the latest messages; the archive is asked for others.
 */
export interface Ids {
  note(chat: string, sender: string, message: Element, external: string | undefined): void
  /** the chat's id of a message, by its sender's */
  external(source: IdSource, chat: string, sender: string, own: string): Promise<string | undefined>
  /** the sender's id of a message, by the chat's */
  own(source: IdSource, chat: string, external: string): Promise<string | undefined>
}

export interface IdSource {
  me: string
  archives: Archives
  /** the server keeps what is said between two */
  hasArchive: boolean
  room(address: string): Room | undefined
}

const mostKnown = 10_000
const lookedAt = 50

export function createIds(): Ids {
  const externals = new Map<string, string>()
  const owns = new Map<string, string>()
  const put = (map: Map<string, string>, key: string, value: string) => {
    map.delete(key)
    map.set(key, value)
    for (const oldest of map.keys()) {
      if (map.size <= mostKnown) return
      map.delete(oldest)
    }
  }
  const keyOf = (...parts: readonly string[]) => JSON.stringify(parts)

  const note: Ids['note'] = (chat, sender, message, external) => {
    const own = sendersIdOf(message)
    if (own === undefined || external === undefined) return
    put(externals, keyOf(chat, sender, own), external)
    put(owns, keyOf(chat, external), own)
  }

  const readLatest = async ({ me, archives, hasArchive, room: roomAt }: IdSource, chat: string) => {
    const room = roomAt(chat)
    if (!(room ? room.hasArchive : hasArchive)) return
    const { items } = await archives.page(
      room ? { of: chat, last: lookedAt } : { of: me, with: chat, last: lookedAt },
    )
    for (const { id, message } of items) {
      const from = message.attrs.from ?? me
      const author = room
        ? (authorIn(message, room) ?? (resourceOf(from) === room.nickname ? me : undefined))
        : bareOf(from)
      if (author !== undefined) note(chat, author, message, externalIdOf(message, id, room !== undefined))
    }
  }
  const look = async (map: Map<string, string>, key: string, source: IdSource, chat: string) => {
    if (!map.has(key)) await readLatest(source, chat)
    return map.get(key)
  }

  return {
    note,
    external: (source, chat, sender, own) => look(externals, keyOf(chat, sender, own), source, chat),
    own: (source, chat, external) => look(owns, keyOf(chat, external), source, chat),
  }
}
