import { z } from 'zod'
import { ApiFailure } from './failure.ts'
import { textOfHtml } from './formatting.ts'
import type { BotAccount, Room, TelegramFile, TelegramMessage, World } from './world.ts'

/** The methods of https://core.telegram.org/bots/api#available-methods that the channel uses. */

const bad = (description: string) => new ApiFailure(400, `Bad Request: ${description}`)

const longestText = 4096
const largestDownload = 20_000_000
const largestUpload = 50_000_000
const largestPhoto = 10_000_000

/** https://core.telegram.org/bots/api#reactiontypeemoji */
const reactions: ReadonlySet<string> = new Set(
  '👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡'.split(
    ' ',
  ),
)

const number = z.coerce.number()
/** Fields of a form are texts, and objects in them JSON. */
const fromForm = <S extends z.ZodType>(schema: S) =>
  z.preprocess(given => (typeof given === 'string' ? JSON.parse(given) : given), schema)
const keyboard = fromForm(
  z.object({ inline_keyboard: z.array(z.array(z.object({ text: z.string(), callback_data: z.string() }))) }),
).optional()
const addressed = z.object({
  chat_id: number,
  message_thread_id: number.optional(),
  reply_parameters: fromForm(
    z.object({ message_id: z.number(), allow_sending_without_reply: z.boolean().default(false) }),
  ).optional(),
  reply_markup: keyboard,
})
const worded = z.object({ text: z.string().default(''), parse_mode: z.enum(['HTML']).optional() })
const uploaded = z.instanceof(File)

export interface MethodContext {
  world: World
  bot: BotAccount
  /** a moment on the platform's clock, in milliseconds */
  now(): number
  answered(query: { id: string; text: string | undefined }): void
  /** queries that may still be answered */
  queries: Set<string>
}

type Method = (given: Record<string, unknown>, context: MethodContext) => unknown

function roomFor({ world, bot }: Pick<MethodContext, 'world' | 'bot'>, chat: number): Room {
  const room = world.rooms.get(chat)
  if (room?.movedTo !== undefined)
    throw new ApiFailure(400, 'Bad Request: group chat was upgraded to a supergroup chat', {
      migrate_to_chat_id: room.movedTo,
    })
  if (!room) throw bad('chat not found')
  if (!room.bots.has(bot.user.id)) {
    const { type } = room.chat
    throw new ApiFailure(
      403,
      type === 'private'
        ? 'Forbidden: bot was blocked by the user'
        : `Forbidden: bot was kicked from the ${type} chat`,
    )
  }
  return room
}

const messageIn = (room: Room, id: number) => room.messages.find(({ message_id }) => message_id === id)

function wordsOf({ text, parse_mode }: z.output<typeof worded>): string {
  const shown = parse_mode === 'HTML' ? textOfHtml(text) : text.trim()
  if (shown === '') throw bad('message text is empty')
  if (shown.length > longestText) throw bad('message is too long')
  return shown
}

function checkKeyboard(markup: z.output<typeof keyboard>): void {
  for (const button of markup?.inline_keyboard.flat() ?? []) {
    if (Buffer.byteLength(button.callback_data) > 64) throw bad('BUTTON_DATA_INVALID')
    if (button.text === '') throw bad('Text buttons are unallowed in the inline keyboard')
  }
}

function say(
  context: MethodContext,
  { chat_id, message_thread_id, reply_parameters, reply_markup }: z.output<typeof addressed>,
  content: Partial<TelegramMessage>,
): TelegramMessage {
  const room = roomFor(context, chat_id)
  checkKeyboard(reply_markup)
  if (message_thread_id !== undefined && !room.topics.has(message_thread_id))
    throw bad('message thread not found')
  const answered = reply_parameters && messageIn(room, reply_parameters.message_id)
  if (reply_parameters && !answered && !reply_parameters.allow_sending_without_reply)
    throw bad('message to be replied not found')
  const message: TelegramMessage = {
    message_id: context.world.nextMessageId(room),
    from: context.bot.user,
    chat: room.chat,
    date: Math.floor(context.now() / 1000),
    ...(message_thread_id !== undefined && { message_thread_id, is_topic_message: true }),
    ...(answered && { reply_to_message: answered }),
    ...(reply_markup && { reply_markup }),
    ...content,
  }
  room.messages.push(message)
  return message
}

const isPicture = (content: Buffer) =>
  content.subarray(1, 4).toString('latin1') === 'PNG' ||
  content.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff]))

async function fileOf(world: World, file: File, limit: number): Promise<[TelegramFile, Buffer]> {
  if (file.size > limit) throw new ApiFailure(413, 'Request Entity Too Large')
  const content = Buffer.from(await file.arrayBuffer())
  return [world.addFile(file.name, content, file.type), content]
}

export const methods: Readonly<Record<string, Method>> = {
  getMe: (_, { bot }) => ({
    ...bot.user,
    can_join_groups: true,
    can_read_all_group_messages: bot.readsAll,
    supports_inline_queries: false,
  }),
  deleteWebhook: () => true,
  getWebhookInfo: (_, { bot }) => ({
    url: '',
    has_custom_certificate: false,
    pending_update_count: bot.updates.length,
  }),
  sendMessage: (given, context) =>
    say(context, addressed.parse(given), { text: wordsOf(worded.parse(given)) }),
  editMessageText: (given, { world, bot }) => {
    const { chat_id, message_id, reply_markup, ...words } = addressed
      .pick({ chat_id: true, reply_markup: true })
      .extend({ message_id: number, ...worded.shape })
      .parse(given)
    const room = roomFor({ world, bot }, chat_id)
    const message = messageIn(room, message_id)
    if (!message) throw bad('message to edit not found')
    if (message.from.id !== bot.user.id) throw bad("message can't be edited")
    if (message.text === undefined) throw bad('there is no text in the message to edit')
    checkKeyboard(reply_markup)
    const text = wordsOf(words)
    // Buttons that are not named again are taken away.
    const buttons = reply_markup ?? { inline_keyboard: [] }
    const before = message.reply_markup ?? { inline_keyboard: [] }
    if (message.text === text && JSON.stringify(before) === JSON.stringify(buttons))
      throw bad(
        'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
      )
    return Object.assign(message, { text, reply_markup: buttons })
  },
  sendDocument: async (given, context) => {
    const [document] = await fileOf(context.world, uploaded.parse(given.document), largestUpload)
    return say(context, addressed.parse(given), { document })
  },
  sendPhoto: async (given, context) => {
    const [photo, content] = await fileOf(context.world, uploaded.parse(given.photo), largestPhoto)
    if (!isPicture(content)) throw bad('IMAGE_PROCESS_FAILED')
    return say(context, addressed.parse(given), { photo: [photo] })
  },
  getFile: (given, { world }) => {
    const file = world.files.get(z.string().parse(given.file_id))
    if (!file) throw bad('wrong file_id or the file is temporarily unavailable')
    if (file.content.length > largestDownload) throw bad('file is too big')
    return { file_id: given.file_id, file_path: file.path, file_size: file.content.length }
  },
  sendChatAction: (given, context) => {
    const room = roomFor(context, number.parse(given.chat_id))
    if (given.action !== 'typing') throw bad('wrong parameter action in request')
    room.lastTyping = context.now()
    return true
  },
  setMessageReaction: (given, context) => {
    const { chat_id, message_id, reaction } = z
      .object({
        chat_id: number,
        message_id: number,
        reaction: z.array(z.object({ type: z.literal('emoji'), emoji: z.string() })).default([]),
      })
      .parse(given)
    const room = roomFor(context, chat_id)
    if (!messageIn(room, message_id)) throw bad('message to react not found')
    if (reaction.length > 1) throw bad('REACTIONS_TOO_MANY')
    if (!reaction.every(({ emoji }) => reactions.has(emoji))) throw bad('REACTION_INVALID')
    const user = context.bot.user.id
    const others = (room.reactions.get(message_id) ?? []).filter(one => one.user !== user)
    room.reactions.set(message_id, [...others, ...reaction.map(({ emoji }) => ({ user, emoji }))])
    return true
  },
  answerCallbackQuery: (given, { queries, answered }) => {
    const { callback_query_id: id, text } = z
      .object({ callback_query_id: z.string(), text: z.string().max(200).optional() })
      .parse(given)
    if (!queries.delete(id)) throw bad('query is too old and response timeout expired or query ID is invalid')
    answered({ id, text })
    return true
  },
  setMyName: (given, { bot }) => {
    const name = z.string().max(64).parse(given.name)
    bot.user.first_name = name
    bot.renamed.push(name)
    return true
  },
}
