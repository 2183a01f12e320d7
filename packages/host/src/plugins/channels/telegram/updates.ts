import type { CallbackQuery, Message, MessageReactionUpdated, Update } from 'grammy/types'
import type { Logger } from 'pino'
import type { ChannelHost, Incoming } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import type { Failures } from '../failures.ts'
import { type Bot, TelegramRefusal } from './bot.ts'
import { pressIn } from './buttons.ts'
import {
  answeredBy,
  fileIn,
  jidOf,
  knownChat,
  type Ourselves,
  personOf,
  speakerOf,
  topicOf,
  wordsOf,
} from './said.ts'

/** Telegram leaves out reactions unless they are asked for. */
export const wantedUpdates = [
  'message',
  'edited_message',
  'callback_query',
  'message_reaction',
  'my_chat_member',
] as const

/** what a notice above the chat can hold */
const longestNotice = 200
const settled = 'This is settled already.'

/**
 * Hands a batch of updates to the host. Resolves once all of it is stored or refused: only then may Telegram forget it.
 * The updates of one chat are taken in their order, those of different chats side by side.
 */
export async function takeUpdates(updates: readonly Update[], options: UpdateOptions): Promise<void> {
  const take = takerOf(options)
  const byChat = Map.groupBy(updates, chatOf)
  await Promise.all(
    [...byChat.values()].map(async some => {
      for (const update of some) await take(update)
    }),
  )
}

export interface UpdateOptions {
  host: ChannelHost
  bot: Bot
  ourselves: Ourselves
  failures: Failures
  log: Logger
}

const chatOf = (update: Update): number | undefined =>
  (
    update.message ??
    update.edited_message ??
    update.callback_query?.message ??
    update.message_reaction ??
    update.my_chat_member
  )?.chat.id

function takerOf({ host, bot, ourselves, failures, log }: UpdateOptions) {
  /** Fetched only where the host wants it: strangers cause no traffic. */
  const contentOf = async function* (id: string) {
    const { file_path } = await bot.ask((api, signal) => api.getFile({ file_id: id }, signal))
    if (file_path === undefined) throw new TelegramRefusal(400, 'the file has no path')
    yield* bot.download(file_path)
  }

  /** The file, or a line that says why it is missing. */
  const takeFile = async (
    by: Pick<Incoming, 'jid' | 'sender'>,
    { id, name }: { id: string; name: string },
  ): Promise<Attachment | string> => {
    try {
      const taken = await host.takeFile(by, { name, content: contentOf(id) })
      return taken.ok ? taken.attachment : `[${name} was not taken: ${taken.error.message}]`
    } catch (error) {
      const isGone = error instanceof TelegramRefusal && (error.isFinal || error.code === 404)
      // Anything else may be over soon: the batch is fetched once more, and all chats wait for it.
      if (!isGone && !failures.isLast(by)) throw error
      const reason = error instanceof TelegramRefusal ? error.description : String(error)
      return `[${name} was not taken: ${reason}]`
    }
  }

  const hear = async (message: Message) => {
    const jid = jidOf(message.chat.id)
    // Either of the two chats may tell first.
    if (message.migrate_to_chat_id !== undefined) return host.moved(jid, jidOf(message.migrate_to_chat_id))
    if (message.migrate_from_chat_id !== undefined) await host.moved(jidOf(message.migrate_from_chat_id), jid)
    host.knows(knownChat(message.chat))
    const speaker = speakerOf(message)
    if (!speaker) return
    const { text, isMention } = wordsOf(message, ourselves)
    const file = fileIn(message)
    if (text === undefined && !file) return
    const taken = file && (await takeFile({ jid, sender: speaker.sender }, file))
    const answered = answeredBy(message)
    await host.receive({
      jid,
      ...speaker,
      externalId: String(message.message_id),
      text: [text, typeof taken === 'string' ? taken : undefined].filter(Boolean).join('\n'),
      ...(typeof taken === 'object' && { attachments: [taken] }),
      at: message.date * 1000,
      mentioned: isMention || (answered?.from !== undefined && ourselves.ids.has(answered.from.id)),
      thread: topicOf(message),
      quote: answered && {
        id: String(answered.message_id),
        ...(answered.from && !ourselves.ids.has(answered.from.id) && personOf(answered.from)),
        text: message.quote?.text ?? answered.text ?? answered.caption,
      },
    })
  }

  const change = async (message: Message) => {
    const speaker = speakerOf(message)
    const { text } = wordsOf(message, ourselves)
    if (!speaker || text === undefined) return
    await host.changed({
      jid: jidOf(message.chat.id),
      ...speaker,
      externalId: String(message.message_id),
      text,
    })
  }

  const press = async ({ id, data, from, message }: CallbackQuery) => {
    const pressed = pressIn(data)
    if (!pressed || !message) return answer(id, settled)
    const by = { jid: jidOf(message.chat.id), ...personOf(from) }
    const outcome =
      pressed.kind === 'choice'
        ? await host.choose({ ...by, id: pressed.id, question: 1, answer: { option: pressed.option } })
        : await host.decide({ ...by, id: pressed.id, decision: pressed.decision })
    await answer(id, outcome.ok ? undefined : outcome.error.message)
  }

  /** Ends the waiting that the button shows; a text is seen by whoever pressed it, and by nobody else. */
  const answer = async (id: string, text: string | undefined) => {
    try {
      await bot.ask((api, signal) =>
        api.answerCallbackQuery(
          {
            callback_query_id: id,
            ...(text !== undefined && { text: text.slice(0, longestNotice), show_alert: true }),
          },
          signal,
        ),
      )
    } catch (error) {
      // Telegram takes no answer to what was pressed a while ago; what was decided is decided.
      log.debug({ reason: String(error) }, 'a press of a button was not answered')
    }
  }

  const react = async (reaction: MessageReactionUpdated) => {
    const { chat, message_id, user, new_reaction, old_reaction } = reaction
    if (!user || user.is_bot) return
    const emojis = (some: typeof new_reaction) =>
      some.flatMap(one => (one.type === 'emoji' ? [one.emoji] : []))
    const before = new Set<string>(emojis(old_reaction))
    for (const emoji of emojis(new_reaction))
      if (!before.has(emoji))
        await host.reacted({ jid: jidOf(chat.id), ...personOf(user), to: String(message_id), emoji })
  }

  return async (update: Update): Promise<void> => {
    const { message, edited_message, callback_query, message_reaction, my_chat_member } = update
    if (message) await hear(message)
    if (edited_message) await change(edited_message)
    if (callback_query) await press(callback_query)
    if (message_reaction) await react(message_reaction)
    const status = my_chat_member?.new_chat_member.status
    if (my_chat_member && status !== 'left' && status !== 'kicked') host.knows(knownChat(my_chat_member.chat))
  }
}
