import type { Chat, Message, User } from 'grammy/types'
import type { Incoming, KnownChat } from '../../../chat/channels/types.ts'

/** What a message of the Bot API means to us. */

export const jidOf = (chat: number): string => `telegram:${chat}`
export const chatIn = (jid: string): number => Number(jid.slice('telegram:'.length))
export const isOurs = (jid: string): boolean => /^telegram:-?\d{1,15}$/.test(jid)

const nameOf = ({ first_name, last_name }: User): string => [first_name, last_name].filter(Boolean).join(' ')

export const knownChat = (chat: Chat): KnownChat => ({
  jid: jidOf(chat.id),
  name:
    chat.title ??
    ([chat.first_name, chat.last_name].filter(Boolean).join(' ') || chat.username || String(chat.id)),
  isGroup: chat.type !== 'private',
})

export const personOf = (user: User): Pick<Incoming, 'sender' | 'senderName'> => ({
  sender: String(user.id),
  senderName: nameOf(user) || String(user.id),
})

/** Undefined: a bot said it, or a channel that is forwarded here. */
export function speakerOf(message: Message): Pick<Incoming, 'sender' | 'senderName'> | undefined {
  const { sender_chat: chat, from } = message
  if (message.is_automatic_forward) return undefined
  // An administrator without a name speaks as the group: all of them are one sender.
  if (chat) return { sender: String(chat.id), senderName: chat.title ?? String(chat.id) }
  return from && !from.is_bot ? personOf(from) : undefined
}

/** The bots that speak for the assistant. */
export interface Ourselves {
  username: string
  ids: ReadonlySet<number>
}

/** What was said, without the mention of the bot; undefined: nothing was, such as where somebody has joined. */
export function wordsOf(
  message: Message,
  ourselves: Ourselves,
): { text: string | undefined; isMention: boolean } {
  const written = message.text ?? message.caption
  if (written === undefined) return { text: besidesWords(message), isMention: false }
  const mention = `@${ourselves.username}`.toLowerCase()
  let text = written
  let isMention = false
  for (const entity of (message.entities ?? message.caption_entities ?? []).toReversed()) {
    const end = entity.offset + entity.length
    const words = written.slice(entity.offset, end)
    const isOurName =
      (entity.type === 'mention' && words.toLowerCase() === mention) ||
      (entity.type === 'text_mention' && ourselves.ids.has(entity.user.id))
    const isOurCommand = entity.type === 'bot_command' && words.toLowerCase().endsWith(mention)
    if (!isOurName && !isOurCommand) continue
    isMention = true
    // Of a command, only whom it is for is taken away.
    const from = isOurCommand ? end - mention.length : entity.offset
    text = text.slice(0, from) + text.slice(end)
  }
  return { text: isMention ? text.trim() : text, isMention }
}

function besidesWords({ venue, location, contact, poll, dice }: Message): string | undefined {
  if (venue) return `[place: ${venue.title}, ${venue.address}]`
  if (location) return `[location: ${location.latitude}, ${location.longitude}]`
  if (contact)
    return `[contact: ${[contact.first_name, contact.last_name, contact.phone_number].filter(Boolean).join(' ')}]`
  if (poll) return `[poll: ${poll.question} (${poll.options.map(({ text }) => text).join(', ')})]`
  return dice && `[${dice.emoji} ${dice.value}]`
}

/** The message it answers. In a topic, every message answers the one that began the topic, which means nothing. */
export function answeredBy(message: Message): Message | undefined {
  const answered = message.reply_to_message
  if (!answered || answered.forum_topic_created) return undefined
  return message.is_topic_message && answered.message_id === message.message_thread_id ? undefined : answered
}

/** Other groups have ids for the threads of answers, too, which are no place to write to. */
export const topicOf = ({ is_topic_message, message_thread_id }: Message): string | undefined =>
  is_topic_message && message_thread_id !== undefined ? String(message_thread_id) : undefined

/** The file of a message: it has one at most. */
export function fileIn(message: Message): { id: string; name: string } | undefined {
  const named = (file: { file_id: string; file_name?: string } | undefined, name: string) =>
    file && { id: file.file_id, name: file.file_name ?? name }
  const numbered = (kind: string, ending: string) => `${kind}-${message.message_id}.${ending}`
  const { sticker } = message
  return (
    // A picture that moves has a document beside it, for older apps.
    named(message.animation, numbered('animation', 'mp4')) ??
    named(message.document, numbered('file', 'bin')) ??
    named(message.photo?.at(-1), numbered('photo', 'jpg')) ??
    named(message.voice, numbered('voice', 'ogg')) ??
    named(message.audio, numbered('audio', 'mp3')) ??
    named(message.video, numbered('video', 'mp4')) ??
    named(message.video_note, numbered('video', 'mp4')) ??
    named(sticker, numbered('sticker', sticker?.is_video ? 'webm' : sticker?.is_animated ? 'tgs' : 'webp'))
  )
}
