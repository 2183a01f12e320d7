import type {
  APIChannel,
  APIGuildChannel,
  GatewayGuildCreateDispatchData,
  GuildChannelType,
} from '@discordjs/core'
import type { KnownChat } from '../../../chat/channels/types.ts'
import type { DiscordApi } from './api.ts'

/** Where something is said. A thread is a channel of its own on Discord, and part of its channel's chat here. */
export interface Place {
  /** undefined: a chat with one person */
  guild: string | undefined
  chat: KnownChat
  thread: string | undefined
}

export interface Places {
  /** asks Discord about one that it has not told of */
  of(channel: string): Promise<Place>
  /** of a server: its channels and the threads that are active */
  learnGuild(guild: GatewayGuildCreateDispatchData): void
  learn(channel: APIChannel, guild?: string): void
  forget(channel: string): void
  /** channels of servers in which something can be said */
  chats(): KnownChat[]
}

export const jidOf = (channel: string): string => `discord:${channel}`
export const channelIn = (jid: string): string => jid.slice('discord:'.length)
export const isOurs = (jid: string): boolean => /^discord:\d{5,20}$/.test(jid)

const directTypes: ReadonlySet<number> = new Set([1, 3])
const threadTypes: ReadonlySet<number> = new Set([10, 11, 12])
/** categories and directories: nobody says anything there */
const silentTypes: ReadonlySet<number> = new Set([4, 14])

interface Known {
  id: string
  type: number
  name: string
  guild: string | undefined
  parent: string | undefined
  /** of the last message there, when Discord told of the channel */
  lastMessage: string | undefined
}

export function createPlaces(discord: DiscordApi): Places {
  const channels = new Map<string, Known>()
  const guildNames = new Map<string, string>()

  const learn: Places['learn'] = (channel, guild) => {
    channels.set(channel.id, knownOf(channel, guild ?? channels.get(channel.id)?.guild))
  }
  const known = async (id: string): Promise<Known> => {
    const before = channels.get(id)
    if (before) return before
    const channel = await discord.ask((api, signal) => api.channels.get(id, { signal }))
    const found = knownOf(channel, undefined)
    channels.set(id, found)
    return found
  }
  const chatOf = ({ id, name, type, guild, lastMessage }: Known): KnownChat => {
    const isGroup = type !== 1
    const server = guild === undefined ? undefined : guildNames.get(guild)
    return {
      jid: jidOf(id),
      name: guild === undefined ? name : [`#${name}`, server].filter(Boolean).join(' · '),
      isGroup,
      ...(lastMessage !== undefined && { lastActivity: timeOf(lastMessage) }),
    }
  }

  return {
    async of(id) {
      const channel = await known(id)
      const { guild } = channel
      if (!threadTypes.has(channel.type) || channel.parent === undefined)
        return { guild, chat: chatOf(channel), thread: undefined }
      return { guild, chat: chatOf(await known(channel.parent)), thread: id }
    },
    learnGuild(guild) {
      guildNames.set(guild.id, guild.name)
      for (const channel of [...guild.channels, ...guild.threads]) learn(channel, guild.id)
    },
    learn,
    forget: channel => void channels.delete(channel),
    chats: () =>
      [...channels.values()]
        .filter(({ guild, type }) => guild !== undefined && !threadTypes.has(type) && !silentTypes.has(type))
        .map(chatOf),
  }
}

/** Ids of Discord say when they were given: https://docs.discord.com/developers/reference#snowflakes */
const timeOf = (id: string): number => Number(BigInt(id) >> 22n) + 1_420_070_400_000

function knownOf(channel: APIChannel, guild: string | undefined): Known {
  const { id, type } = channel
  const lastMessage = ('last_message_id' in channel && channel.last_message_id) || undefined
  if (directTypes.has(type)) {
    const people = 'recipients' in channel ? (channel.recipients ?? []) : []
    const name = people.map(person => person.global_name ?? person.username).join(', ')
    return { id, type, name: channel.name ?? (name || id), guild: undefined, parent: undefined, lastMessage }
  }
  const { guild_id, parent_id } = channel as APIGuildChannel<GuildChannelType> & { parent_id?: string | null }
  const place = { guild: guild ?? guild_id, parent: parent_id ?? undefined }
  return { id, type, name: channel.name ?? id, ...place, lastMessage }
}
