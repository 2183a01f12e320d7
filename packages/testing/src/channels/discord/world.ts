/** People, servers, channels and what was said in them, as Discord keeps them. */

export interface User {
  id: string
  username: string
  global_name: string | null
  bot?: boolean
}

export interface Attachment {
  id: string
  filename: string
  size: number
  url: string
  content_type?: string
}

interface Button {
  type: number
  label: string
  custom_id: string
  style: number
}

interface ActionRow {
  type: number
  components: Button[]
}

export interface Message {
  id: string
  channel_id: string
  author: User
  content: string
  timestamp: string
  edited_timestamp: string | null
  type: number
  mentions: User[]
  mention_roles: string[]
  mention_everyone: boolean
  attachments: Attachment[]
  embeds: { description?: string }[]
  components: ActionRow[]
  flags: number
  nonce?: string
  message_reference?: { message_id: string; channel_id: string }
  referenced_message?: Message | null
  webhook_id?: string
  application_id?: string
  message_snapshots?: { message: Partial<Message> }[]
  sticker_items?: { id: string; name: string }[]
}

/** What the bot may not do in a channel. */
type Denied = 'view' | 'send' | 'webhooks'

export interface Channel {
  id: string
  /** 0: in a server, 1: with one person, 11: a thread */
  type: number
  name: string | undefined
  guild_id?: string
  parent_id?: string
  recipients?: User[]
  isLocked: boolean
  isArchived: boolean
  messages: Message[]
  /** by message: who reacted with what */
  reactions: Map<string, { user: string; emoji: string }[]>
  lastTyping: number
  denied: Set<Denied>
}

export interface Guild {
  id: string
  name: string
  /** the role that the bot got when it was added */
  role: string
}

export interface Webhook {
  id: string
  token: string
  name: string
  channel_id: string
  application_id: string | null
}

const epoch = 1_420_070_400_000n

export function createWorld() {
  const users = new Map<string, User>()
  const guilds = new Map<string, Guild>()
  const channels = new Map<string, Channel>()
  const webhooks = new Map<string, Webhook>()
  const files = new Map<string, Buffer>()
  let last = 0n

  /** https://docs.discord.com/developers/reference#snowflakes: later ones are greater */
  const nextId = (): string => {
    const now = (BigInt(Date.now()) - epoch) << 22n
    last = now > last ? now : last + 1n
    return String(last)
  }
  const addUser = (name: string, more: Partial<User> = {}): User => {
    const user: User = { id: nextId(), username: name.toLowerCase(), global_name: name, ...more }
    users.set(user.id, user)
    return user
  }

  return {
    users,
    guilds,
    channels,
    webhooks,
    files,
    nextId,
    addUser,
    bot: { ...addUser('Hatch', { bot: true, global_name: null }) },
    application: { id: nextId(), flags: 1 << 19, interactions_endpoint_url: null as string | null },
    addGuild(name: string): Guild {
      const guild = { id: nextId(), name, role: nextId() }
      guilds.set(guild.id, guild)
      return guild
    },
    addChannel(more: Partial<Channel> & Pick<Channel, 'type'>): Channel {
      const channel: Channel = {
        id: nextId(),
        name: undefined,
        isLocked: false,
        isArchived: false,
        messages: [],
        reactions: new Map(),
        lastTyping: Number.NEGATIVE_INFINITY,
        denied: new Set(),
        ...more,
      }
      channels.set(channel.id, channel)
      return channel
    },
    addFile(filename: string, content: Buffer, url: (id: string) => string, type?: string): Attachment {
      const id = nextId()
      files.set(id, content)
      return { id, filename, size: content.length, url: url(id), ...(type && { content_type: type }) }
    },
    /** threads of a channel, and itself */
    around: (id: string) =>
      [...channels.values()].filter(channel => channel.id === id || channel.parent_id === id),
  }
}

export type World = ReturnType<typeof createWorld>

/** As the API gives it. */
export const channelObject = (channel: Channel) => ({
  id: channel.id,
  type: channel.type,
  name: channel.name,
  ...(channel.guild_id && { guild_id: channel.guild_id }),
  ...(channel.parent_id && { parent_id: channel.parent_id }),
  ...(channel.recipients && { recipients: channel.recipients }),
  ...(channel.type !== 4 && { last_message_id: channel.messages.at(-1)?.id ?? null }),
  ...(channel.type === 11 && { thread_metadata: { archived: channel.isArchived, locked: channel.isLocked } }),
})
