import type { Logger } from 'pino'
import type { KnownChat } from '../../../chat/channels/types.ts'
import type { SlackApi } from './api.ts'
import { jidOf, knownChat, type SlackChat } from './said.ts'

/** The names of people and chats. Slack gives ids only; what it was asked for is kept for a while. */
export interface Directory {
  /** the id where Slack does not tell */
  nameOf(user: string): Promise<string>
  chatOf(channel: string): Promise<KnownChat>
  forget(channel: string): void
  /** those that we are in */
  chats(): Promise<readonly KnownChat[]>
}

const keptMs = 600_000
const mostKept = 5000
const pageSize = 200

export function createDirectory(options: { api: SlackApi; log: Logger; now(): number }): Directory {
  const { api, log, now } = options
  const people = createMemory<string>(now)
  const rooms = createMemory<KnownChat>(now)

  const nameOf = (user: string) =>
    people.get(user, async () => {
      try {
        const { user: found } = await api.ask(web => web.users.info({ user }))
        return found?.profile?.display_name || found?.real_name || found?.name
      } catch (error) {
        log.debug({ user, reason: String(error) }, 'a name could not be looked up')
        return undefined
      }
    })
  const described = async (id: string, chat: SlackChat): Promise<KnownChat> =>
    knownChat(id, chat, chat.is_im && chat.user ? ((await nameOf(chat.user)) ?? chat.user) : undefined)

  return {
    nameOf: async user => (await nameOf(user)) ?? user,
    async chatOf(id) {
      const found = await rooms.get(id, async () => {
        try {
          const { channel } = await api.ask(web => web.conversations.info({ channel: id }))
          return channel && (await described(id, channel))
        } catch (error) {
          log.debug({ id, reason: String(error) }, 'a chat could not be looked up')
          return undefined
        }
      })
      return found ?? { jid: jidOf(id), name: id, isGroup: !id.startsWith('D') }
    },
    forget: id => rooms.forget(id),
    async chats() {
      const found: KnownChat[] = []
      let cursor: string | undefined
      do {
        const page = await api.ask(web =>
          web.users.conversations({
            types: 'public_channel,private_channel,mpim,im',
            exclude_archived: true,
            limit: pageSize,
            ...(cursor && { cursor }),
          }),
        )
        for (const chat of page.channels ?? [])
          if (chat.id !== undefined) found.push(await described(chat.id, chat))
        cursor = page.response_metadata?.next_cursor
      } while (cursor)
      return found
    },
  }
}

/** Keeps what was found, not what was not: that is asked for again. */
export function createMemory<T>(now: () => number) {
  const kept = new Map<string, { value: T; until: number }>()
  return {
    async get(key: string, find: () => Promise<T | undefined>): Promise<T | undefined> {
      const known = kept.get(key)
      if (known && known.until > now()) return known.value
      const value = await find()
      if (value === undefined) return known?.value
      if (kept.size >= mostKept) kept.clear()
      kept.set(key, { value, until: now() + keptMs })
      return value
    },
    forget: (key: string) => kept.delete(key),
  }
}
