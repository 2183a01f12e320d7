/** People, bots, chats and what was said in them, as Telegram's side of the Bot API keeps them. */

interface TelegramUser {
  id: number
  is_bot: boolean
  first_name: string
  username?: string
}

export interface TelegramChat {
  id: number
  type: 'private' | 'group' | 'supergroup'
  title?: string
  first_name?: string
  is_forum?: boolean
}

interface Button {
  text: string
  callback_data: string
}

export interface TelegramMessage {
  message_id: number
  message_thread_id?: number
  is_topic_message?: boolean
  from: TelegramUser
  chat: TelegramChat
  date: number
  edit_date?: number
  text?: string
  caption?: string
  entities?: { type: string; offset: number; length: number }[]
  caption_entities?: { type: string; offset: number; length: number }[]
  document?: TelegramFile
  voice?: TelegramFile
  photo?: TelegramFile[]
  location?: { latitude: number; longitude: number }
  reply_to_message?: TelegramMessage
  reply_markup?: { inline_keyboard: Button[][] }
  forum_topic_created?: { name: string; icon_color: number }
  new_chat_title?: string
  migrate_to_chat_id?: number
  migrate_from_chat_id?: number
}

export interface TelegramFile {
  file_id: string
  file_unique_id: string
  file_name?: string
  mime_type?: string
  file_size: number
}

export interface Update {
  update_id: number
  [kind: string]: unknown
}

export interface Room {
  chat: TelegramChat
  messages: TelegramMessage[]
  topics: Set<number>
  /** bots that may speak here */
  bots: Set<number>
  /** bots that are told of reactions here */
  admins: Set<number>
  reactions: Map<number, { user: number; emoji: string }[]>
  movedTo?: number
  lastTyping: number
}

/** Kinds of updates that a bot gets only if it names them: https://core.telegram.org/bots/api#getupdates */
const onlyIfNamed: ReadonlySet<string> = new Set([
  'chat_member',
  'message_reaction',
  'message_reaction_count',
])

export interface BotAccount {
  token: string
  user: TelegramUser
  /** privacy mode is off: https://core.telegram.org/bots/features#privacy-mode */
  readsAll: boolean
  updates: Update[]
  /** those that it has confirmed, for a Telegram that forgets that it has */
  confirmed: Update[]
  allowed: readonly string[]
  /** a request for updates that is held back; a second one ends it */
  waiting: { wake(): void; terminate(): void } | undefined
  renamed: string[]
}

export function createWorld() {
  const bots = new Map<string, BotAccount>()
  const rooms = new Map<number, Room>()
  const files = new Map<string, { path: string; content: Buffer }>()
  let lastUpdate = 700_000
  let lastId = 100
  let lastFile = 0

  const world = {
    bots,
    rooms,
    files,
    addBot(id: number, username: string, readsAll = true): BotAccount {
      const bot: BotAccount = {
        token: `${id}:AAE-${username}_${'x'.repeat(24)}`,
        user: { id, is_bot: true, first_name: username, username },
        readsAll,
        updates: [],
        confirmed: [],
        allowed: [],
        waiting: undefined,
        renamed: [],
      }
      bots.set(bot.token, bot)
      return bot
    },
    addRoom(chat: TelegramChat, members: readonly BotAccount[]): Room {
      const ids = members.map(({ user }) => user.id)
      const room: Room = {
        chat,
        messages: [],
        topics: new Set(),
        bots: new Set(ids),
        admins: new Set(ids),
        reactions: new Map(),
        lastTyping: Number.NEGATIVE_INFINITY,
      }
      rooms.set(chat.id, room)
      return room
    },
    /** Supergroups count their own messages; all other chats of an account share its numbers. */
    nextMessageId: ({ chat, messages }: Room): number =>
      chat.type === 'supergroup' ? (messages.at(-1)?.message_id ?? 0) + 1 : ++lastId,
    addFile(name: string | undefined, content: Buffer, type: string): TelegramFile {
      const number = ++lastFile
      const file_id = `BQACAgIAAx${number}`
      files.set(file_id, { path: `documents/file_${number}`, content })
      return {
        file_id,
        file_unique_id: `AgAD${number}`,
        ...(name !== undefined && { file_name: name }),
        mime_type: type,
        file_size: content.length,
      }
    },
    /** Puts an update before a bot, unless it is of a kind it has not asked for. */
    tell(bot: BotAccount, kind: string, content: unknown): void {
      const isWanted = bot.allowed.length > 0 ? bot.allowed.includes(kind) : !onlyIfNamed.has(kind)
      if (!isWanted) return
      bot.updates.push({ update_id: ++lastUpdate, [kind]: structuredClone(content) })
      bot.waiting?.wake()
    },
    /** Bots of a chat learn what people say there; those with privacy mode only what is meant for them. */
    tellAll(room: Room, kind: 'message' | 'edited_message', message: TelegramMessage): void {
      for (const bot of bots.values()) {
        if (!room.bots.has(bot.user.id)) continue
        const isService = message.text === undefined && message.caption === undefined && !message.document
        const isForBot =
          message.text?.includes(`@${bot.user.username}`) === true ||
          message.text?.startsWith('/') === true ||
          message.reply_to_message?.from.id === bot.user.id
        if (room.chat.type === 'private' || bot.readsAll || isService || isForBot)
          world.tell(bot, kind, message)
      }
    },
  }
  return world
}

export type World = ReturnType<typeof createWorld>
