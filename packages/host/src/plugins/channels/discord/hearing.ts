import type { GatewayMessageReactionAddDispatchData } from '@discordjs/core'
import type { ChannelHost, Incoming } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import type { DiscordApi } from './api.ts'
import type { Cursors } from './cursors.ts'
import type { Place, Places } from './places.ts'
import { DiscordRefusal } from './refusals.ts'
import {
  filesIn,
  isMeant,
  type Ourselves,
  personOf,
  quoteIn,
  type SaidMessage,
  speakerOf,
  wordsOf,
} from './said.ts'

/** Hands what people do on Discord to the host. Each promise is fulfilled once it is stored or refused. */
export interface Hearing {
  hear(message: SaidMessage): Promise<void>
  change(message: SaidMessage): Promise<void>
  remove(channel: string, message: string): Promise<void>
  react(reaction: GatewayMessageReactionAddDispatchData): Promise<void>
}

export interface HearingOptions {
  host: ChannelHost
  discord: DiscordApi
  places: Places
  cursors: Cursors
  ourselves: Ourselves
}

/** messages whose authors are known: Discord does not say whose message was deleted */
const mostAuthors = 10_000

export function createHearing({ host, discord, places, cursors, ourselves }: HearingOptions): Hearing {
  const authors = new Map<string, Pick<Incoming, 'sender' | 'senderName'>>()

  const note = (message: string, author: Pick<Incoming, 'sender' | 'senderName'>) => {
    authors.set(message, author)
    const [oldest] = authors.keys()
    if (authors.size > mostAuthors && oldest !== undefined) authors.delete(oldest)
  }

  /** The files, and a line for each that is missing. They are fetched only where the host wants them. */
  const takeFiles = async (by: Pick<Incoming, 'jid' | 'sender'>, message: SaidMessage) => {
    const attachments: Attachment[] = []
    const missing: string[] = []
    for (const { name, url } of filesIn(message)) {
      try {
        const taken = await host.takeFile(by, { name, content: discord.download(url) })
        if (taken.ok) attachments.push(taken.attachment)
        else missing.push(`[${name} was not taken: ${taken.error.message}]`)
      } catch (error) {
        // Anything else may be over soon: the message is taken once more.
        if (!(error instanceof DiscordRefusal)) throw error
        missing.push(`[${name} was not taken: ${error.description}]`)
      }
    }
    return { attachments, missing }
  }

  /** Whether the chat is a group's, and the author heard there. */
  const receive = async (message: SaidMessage, { chat, thread }: Place): Promise<boolean> => {
    const speaker = speakerOf(message)
    if (!speaker) return false
    host.knows(chat)
    const { jid } = chat
    const { attachments, missing } = await takeFiles({ jid, sender: speaker.sender }, message)
    const text = [wordsOf(message, ourselves), ...missing].filter(Boolean).join('\n')
    // So it is where the bot may not read what does not mention it.
    if (text === '' && attachments.length === 0) return false
    const received = await host.receive({
      jid,
      ...speaker,
      externalId: message.id,
      text,
      ...(attachments.length > 0 && { attachments }),
      at: Date.parse(message.timestamp),
      mentioned: isMeant(message, ourselves),
      thread,
      quote: quoteIn(message, ourselves),
    })
    if (received.ok) note(message.id, speaker)
    return received.ok
  }

  return {
    async hear(message) {
      const { channel_id, id, author } = message
      const place = await places.of(channel_id)
      const isTaken = await receive(message, place)
      // Where we have spoken ourselves, somebody may answer while we are away.
      const isWanted = isTaken || author.id === ourselves.user || cursors.of(channel_id) !== undefined
      if (isWanted) cursors.advance(channel_id, place.guild, id)
    },
    async change(message) {
      // Discord also tells of previews that it has added.
      const speaker = message.edited_timestamp ? speakerOf(message) : undefined
      if (!speaker) return
      const { chat } = await places.of(message.channel_id)
      const text = wordsOf(message, ourselves)
      if (text !== '') await host.changed({ jid: chat.jid, ...speaker, externalId: message.id, text })
    },
    async remove(channel, message) {
      const author = authors.get(message)
      if (!author) return
      const { chat } = await places.of(channel)
      await host.changed({ jid: chat.jid, ...author, externalId: message, text: null })
    },
    async react({ channel_id, message_id, user_id, member, emoji }) {
      if (user_id === ourselves.user || member?.user.bot) return
      const { chat } = await places.of(channel_id)
      const user = member?.user ?? (await discord.ask((api, signal) => api.users.get(user_id, { signal })))
      const shown = emoji.id === null ? emoji.name : `:${emoji.name}:`
      if (shown)
        await host.reacted({ jid: chat.jid, ...personOf(user, member), to: message_id, emoji: shown })
    },
  }
}
