import { layoutOf } from '../../../../host/src/base/layout.ts'
import { discord } from '../../../../host/src/plugins/channels/discord/kind.ts'
import { createLibrary } from '../../../../host/src/plugins/channels/library.ts'
import type { Person, Platform, Said, Shown } from '../platform.ts'
import { failures } from './failure.ts'
import { textOfMarkdown } from './formatting.ts'
import type { WebSockets } from './gateway.ts'
import { startDiscord } from './server.ts'
import { type Channel, channelObject, type Message, type User } from './world.ts'

const typingSeenMs = 10_000

/** The stand-in with a bot, a chat with Ann, and a server with one channel. */
export async function openDiscord(options: { heartbeatMs?: number } = {}) {
  const library = await createLibrary(layoutOf('/nowhere'), discord)<WebSockets>('ws')
  const api = await startDiscord({ library, ...options })
  const { world, gateway } = api
  const people = { ann: world.addUser('Ann'), stranger: world.addUser('Mallory') }
  const guild = world.addGuild('The others')
  const alone = world.addChannel({ type: 1, recipients: [people.ann] })
  const general = world.addChannel({ type: 0, name: 'general', guild_id: guild.id })
  const personOf = ({ id, global_name }: User): Person => ({ id, name: global_name ?? '' })

  const channelOf = (jid: string): Channel => {
    const found = world.channels.get(jid.replace('discord:', ''))
    if (!found) throw new Error(`no channel ${jid}`)
    return found
  }
  const userOf = ({ id }: Person): User => {
    const found = world.users.get(id)
    if (!found) throw new Error(`nobody is ${id}`)
    return found
  }
  /** in the chat or one of its threads */
  const placeOf = (jid: string, id: string): [Channel, Message] => {
    for (const channel of world.around(channelOf(jid).id)) {
      const message = channel.messages.find(one => one.id === id)
      if (message) return [channel, message]
    }
    throw new Error(`no message ${id} in ${jid}`)
  }
  const inGuild = ({ guild_id }: Channel, user: User) => ({
    ...(guild_id && { guild_id, member: { user, nick: null, roles: [] } }),
  })

  /** Something that a person says. */
  const put = (by: Person, channel: Channel, content: Partial<Message>): Message => {
    const author = userOf(by)
    const message: Message = {
      id: world.nextId(),
      channel_id: channel.id,
      author,
      content: '',
      timestamp: new Date().toISOString(),
      edited_timestamp: null,
      type: 0,
      mentions: [],
      mention_roles: [],
      mention_everyone: false,
      attachments: [],
      embeds: [],
      components: [],
      flags: 0,
      ...content,
    }
    channel.messages.push(message)
    return message
  }
  const tell = (channel: Channel, message: Message) =>
    gateway.dispatch('MESSAGE_CREATE', { ...message, ...inGuild(channel, message.author) }, channel)
  /** The bot is told of it, too. */
  const post = (by: Person, channel: Channel, content: Partial<Message>): Message => {
    const message = put(by, channel, content)
    tell(channel, message)
    return message
  }

  const thread = (jid: string): Channel => {
    const { id, guild_id } = channelOf(jid)
    const begun = world.addChannel({
      type: 11,
      name: 'A thread',
      parent_id: id,
      ...(guild_id && { guild_id }),
    })
    gateway.dispatch('THREAD_CREATE', { ...channelObject(begun), newly_created: true })
    return begun
  }

  const say = (by: Person, jid: string, text: string, more: Said): Message => {
    const channel =
      more.thread === undefined
        ? channelOf(jid)
        : more.thread === 'new'
          ? thread(jid)
          : channelOf(`discord:${more.thread}`)
    const answered = more.replyTo === undefined ? undefined : placeOf(jid, more.replyTo)[1]
    return post(by, channel, {
      content: more.mention ? `<@${world.bot.id}> ${text}` : text,
      mentions: more.mention ? [world.bot] : [],
      ...(more.file && { attachments: [world.addFile(more.file.name, more.file.content, api.fileUrl)] }),
      ...(answered && {
        type: 19,
        message_reference: { message_id: answered.id, channel_id: answered.channel_id },
        referenced_message: answered,
      }),
    })
  }

  const shownOf = (channel: Channel, message: Message): Shown => {
    const [file] = message.attachments
    const texts = [message.content, ...message.embeds.map(({ description = '' }) => description)]
    return {
      id: message.id,
      isOurs: message.author.id === world.bot.id || message.application_id === world.application.id,
      text: texts.filter(Boolean).map(textOfMarkdown).join('\n'),
      buttons: message.components.flatMap(({ components }) => components.map(({ label }) => label)),
      thread: channel.type === 11 ? channel.id : undefined,
      replyTo: message.message_reference?.message_id,
      file: file && { name: file.filename, bytes: file.size },
      reactions: (channel.reactions.get(message.id) ?? []).map(({ emoji }) => emoji),
    }
  }

  const platform = {
    settings: { token: api.token, server: api.url() },
    direct: `discord:${alone.id}`,
    room: `discord:${general.id}`,
    ann: personOf(people.ann),
    stranger: personOf(people.stranger),
    dropsRepeats: true,
    say: async (by, jid, text, more = {}) => say(by, jid, text, more).id,
    shown: async jid =>
      world
        .around(channelOf(jid).id)
        .flatMap(channel => channel.messages.map(message => shownOf(channel, message)))
        .toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)),
    down: api.down,
    up: api.up,
    close: api.down,
    async another(number) {
      const user = world.addUser(`Person ${number}`)
      return {
        person: personOf(user),
        jid: `discord:${world.addChannel({ type: 1, recipients: [user] }).id}`,
      }
    },
    async press(by, jid, id, label) {
      const [channel, message] = placeOf(jid, id)
      const button = message.components.flatMap(row => row.components).find(one => one.label === label)
      if (!button) throw new Error(`no button ${label}`)
      platform.pressId(by, channel, message, button.custom_id)
    },
    async edit(by, jid, id, text) {
      const [channel, message] = placeOf(jid, id)
      Object.assign(message, { content: text, edited_timestamp: new Date().toISOString() })
      gateway.dispatch('MESSAGE_UPDATE', { ...message, ...inGuild(channel, userOf(by)) }, channel)
    },
    async remove(_, jid, id) {
      const [channel, message] = placeOf(jid, id)
      channel.messages = channel.messages.filter(one => one !== message)
      gateway.dispatch('MESSAGE_DELETE', { id, channel_id: channel.id, guild_id: channel.guild_id }, channel)
    },
    async react(by, jid, id, emoji) {
      const [channel, message] = placeOf(jid, id)
      const user = userOf(by)
      channel.reactions.set(id, [...(channel.reactions.get(id) ?? []), { user: user.id, emoji }])
      gateway.dispatch(
        'MESSAGE_REACTION_ADD',
        {
          user_id: user.id,
          channel_id: channel.id,
          message_id: id,
          message_author_id: message.author.id,
          emoji: { id: null, name: emoji },
          ...inGuild(channel, user),
        },
        channel,
      )
    },
    async rename(jid, name) {
      const channel = channelOf(jid)
      channel.name = name
      gateway.dispatch('CHANNEL_UPDATE', channelObject(channel))
    },
    isTyping: jid => Date.now() - channelOf(jid).lastTyping < typingSeenMs,
    refuse(times, how) {
      for (let i = 0; i < times; i++)
        api.refusals.push(how === 'limit' ? failures.limited(0.3) : failures.badGateway())
    },
    async repeat() {
      for (const channel of world.channels.values())
        for (const message of channel.messages) tell(channel, message)
    },
    async swap(by, jid, texts) {
      const messages = texts.map(content => put(by, channelOf(jid), { content }))
      for (const message of messages.toReversed()) tell(channelOf(jid), message)
    },
    /** somebody's webhook, under her name */
    async forge(text) {
      const author = {
        ...people.stranger,
        username: people.ann.username,
        global_name: people.ann.global_name,
      }
      post(platform.stranger, general, {
        author: { ...author, bot: true },
        webhook_id: world.nextId(),
        content: `<@${world.bot.id}> ${text}`,
        mentions: [world.bot],
      })
    },

    // What is special to Discord.
    api,
    guild,
    channelOf,
    placeOf,
    post,
    thread,
    /** a button that is still shown somewhere, or was forged */
    pressId(by: Person, channel: Channel, message: Message, customId: string) {
      const user = userOf(by)
      const id = world.nextId()
      const token = `press-${id}`
      api.interactions.set(token, { id, token, at: Date.now(), isAnswered: false })
      gateway.dispatch('INTERACTION_CREATE', {
        id,
        token,
        type: 3,
        version: 1,
        application_id: world.application.id,
        channel_id: channel.id,
        channel: channelObject(channel),
        message,
        data: { custom_id: customId, component_type: 2 },
        ...(channel.guild_id ? inGuild(channel, user) : { user }),
      })
    },
  } satisfies Platform & Record<string, unknown>
  return platform
}
