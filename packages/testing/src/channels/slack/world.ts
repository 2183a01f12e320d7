import type { Blocks } from './formatting.ts'

/** A workspace, as Slack keeps it: people, chats, what was said in them, and the app. */

export interface WorldFile {
  id: string
  name: string
  mimetype: string
  size: number
  mode: string
  is_external: boolean
  url_private: string
  url_private_download?: string
  file_access?: string
}

export interface WorldMessage {
  type: 'message'
  subtype?: string
  user?: string
  bot_id?: string
  username?: string
  icon_emoji?: string
  text: string
  blocks?: Blocks
  ts: string
  thread_ts?: string
  parent_user_id?: string
  files?: WorldFile[]
  attachments?: object[]
  edited?: { user: string; ts: string }
}

export interface WorldChat {
  id: string
  name?: string
  /** of a direct chat: with whom */
  user?: string
  is_im: boolean
  is_member: boolean
  is_archived: boolean
  messages: WorldMessage[]
  reactions: { ts: string; user: string; name: string }[]
}

interface WorldApp {
  token: string
  appToken: string
  user: string
  bot: string
  scopes: Set<string>
  hasSocketMode: boolean
}

const allScopes =
  'app_mentions:read channels:history channels:read chat:write chat:write.customize files:read files:write groups:history groups:read im:history im:read mpim:history mpim:read reactions:read reactions:write users:read'.split(
    ' ',
  )

export function createWorld() {
  const people = new Map<string, { id: string; name: string }>()
  const chats = new Map<string, WorldChat>()
  const files = new Map<string, { file: WorldFile; content: Buffer }>()
  const app: WorldApp = {
    token: `xoxb-1-2-${'secret'.repeat(3)}`,
    appToken: `xapp-1-A0APP-3-${'hidden'.repeat(3)}`,
    user: 'U0HATCH',
    bot: 'B0HATCH',
    scopes: new Set(allScopes),
    hasSocketMode: true,
  }
  /** what the app is told, by whoever carries it */
  const listeners = new Set<(event: Record<string, unknown>) => void>()
  let lastMicros = 0
  let lastFile = 0

  const world = {
    people,
    chats,
    files,
    app,
    listeners,
    /** ids of messages are times, and no two are the same */
    nextTs(): string {
      lastMicros = Math.max(Date.now() * 1000, lastMicros + 1)
      return `${Math.floor(lastMicros / 1e6)}.${String(lastMicros % 1e6).padStart(6, '0')}`
    },
    addPerson(id: string, name: string): void {
      people.set(id, { id, name })
    },
    addChat(id: string, more: Partial<WorldChat>): WorldChat {
      const chat: WorldChat = {
        id,
        is_im: false,
        is_member: true,
        is_archived: false,
        messages: [],
        reactions: [],
        ...more,
      }
      chats.set(id, chat)
      return chat
    },
    addFile(name: string, content: Buffer, server: string, more: Partial<WorldFile> = {}): WorldFile {
      const id = `F0${++lastFile}`
      const url = `${server}files-pri/T0-${id}/${encodeURIComponent(name)}`
      const file: WorldFile = {
        id,
        name,
        mimetype: 'application/octet-stream',
        size: content.length,
        mode: 'hosted',
        is_external: false,
        url_private: url,
        url_private_download: url,
        ...more,
      }
      files.set(id, { file, content })
      return file
    },
    tell(event: Record<string, unknown>): void {
      for (const listener of listeners) listener(structuredClone(event))
    },
    typeOf: (chat: WorldChat) => (chat.is_im ? 'im' : 'channel'),
    /** Puts a message into a chat. */
    put(chat: WorldChat, content: Partial<WorldMessage>): WorldMessage {
      const parent = chat.messages.find(({ ts }) => ts === content.thread_ts)
      const message: WorldMessage = {
        type: 'message',
        text: '',
        ts: world.nextTs(),
        ...(parent?.user !== undefined && { parent_user_id: parent.user }),
        ...content,
      }
      chat.messages.push(message)
      return message
    },
    /** The app is told of all that is said where it is, also by itself; of a mention twice. */
    announce(chat: WorldChat, message: WorldMessage): void {
      if (!chat.is_member) return
      const placed = { ...message, channel: chat.id, event_ts: message.ts }
      world.tell({ ...placed, channel_type: world.typeOf(chat) })
      if (!chat.is_im && message.text.includes(`<@${app.user}>`))
        world.tell({ ...placed, type: 'app_mention', subtype: undefined })
    },
    post(chat: WorldChat, content: Partial<WorldMessage>): WorldMessage {
      const message = world.put(chat, content)
      world.announce(chat, message)
      return message
    },
    /** What history shows of a message that has answers. */
    withReplies(chat: WorldChat, message: WorldMessage): object {
      const replies = chat.messages.filter(one => one.thread_ts === message.ts && one.ts !== message.ts)
      const latest = replies.at(-1)?.ts
      return latest === undefined
        ? message
        : { ...message, thread_ts: message.ts, reply_count: replies.length, latest_reply: latest }
    },
  }
  return world
}

export type World = ReturnType<typeof createWorld>
