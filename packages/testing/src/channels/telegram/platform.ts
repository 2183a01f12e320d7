import type { Person, Platform, Said, Shown } from '../platform.ts'
import { ApiFailure } from './failure.ts'
import { startBotApi } from './server.ts'
import type { Room, TelegramMessage } from './world.ts'

const ann: Person = { id: '501', name: 'Ann' }
const stranger: Person = { id: '666', name: 'Mallory' }
const direct = `telegram:${ann.id}`
const room = 'telegram:-1001234567890'

const typingSeenMs = 5000

/** The stand-in with a bot, a chat with Ann, and a group that has topics. */
export async function openTelegram(options: { pool?: number; readsAll?: boolean } = {}) {
  const api = await startBotApi()
  const { world } = api
  const bot = world.addBot(7001, 'hatch_bot', options.readsAll ?? true)
  const pool = Array.from({ length: options.pool ?? 0 }, (_, i) =>
    // They only speak.
    world.addBot(8001 + i, `hatch_pool${i}_bot`, false),
  )
  world.addRoom({ id: Number(ann.id), type: 'private', first_name: ann.name }, [bot])
  world.addRoom({ id: -1001234567890, type: 'supergroup', title: 'The others', is_forum: true }, [
    bot,
    ...pool,
  ])
  let lastQuery = 0

  const roomOf = (jid: string): Room => {
    const found = world.rooms.get(Number(jid.replace('telegram:', '')))
    if (!found) throw new Error(`no chat ${jid}`)
    return found
  }
  const userOf = ({ id, name }: Person) => ({ id: Number(id), is_bot: false, first_name: name })
  const messageIn = (jid: string, id: string): TelegramMessage => {
    const found = roomOf(jid).messages.find(({ message_id }) => String(message_id) === id)
    if (!found) throw new Error(`no message ${id} in ${jid}`)
    return found
  }
  const entitiesIn = (text: string) => {
    const at = text.indexOf(`@${bot.user.username}`)
    return at < 0 ? [] : [{ type: 'mention', offset: at, length: `@${bot.user.username}`.length }]
  }

  /** Something that a person does in a chat. */
  const put = (by: Person, jid: string, content: Partial<TelegramMessage>): TelegramMessage => {
    const here = roomOf(jid)
    const message: TelegramMessage = {
      message_id: world.nextMessageId(here),
      from: userOf(by),
      chat: here.chat,
      date: Math.floor(Date.now() / 1000),
      ...content,
    }
    here.messages.push(message)
    return message
  }
  /** Its bots are told of it, too. */
  const post = (by: Person, jid: string, content: Partial<TelegramMessage>): TelegramMessage => {
    const message = put(by, jid, content)
    world.tellAll(roomOf(jid), 'message', message)
    return message
  }

  const topic = (by: Person, jid: string): TelegramMessage => {
    const begun = post(by, jid, { forum_topic_created: { name: 'A topic', icon_color: 7_322_096 } })
    roomOf(jid).topics.add(begun.message_id)
    return begun
  }

  const contentOf = (jid: string, by: Person, text: string, more: Said): Partial<TelegramMessage> => {
    const said = more.mention ? `@${bot.user.username} ${text}` : text
    const begun =
      more.thread === undefined
        ? undefined
        : more.thread === 'new'
          ? topic(by, jid)
          : messageIn(jid, more.thread)
    // Whoever answers nothing in a topic answers what began it.
    const answered = more.replyTo === undefined ? begun : messageIn(jid, more.replyTo)
    const entities = entitiesIn(said)
    return {
      ...(more.file
        ? {
            document: world.addFile(more.file.name, more.file.content, 'application/octet-stream'),
            caption: said,
            caption_entities: entities,
          }
        : { text: said, entities }),
      ...(begun && { message_thread_id: begun.message_id, is_topic_message: true }),
      ...(answered && { reply_to_message: { ...answered } }),
    }
  }

  const shownOf = (here: Room, message: TelegramMessage): Shown => {
    const { message_id, from, text, caption, reply_markup, document, photo, reply_to_message } = message
    const file = document ?? photo?.at(-1)
    return {
      id: String(message_id),
      isOurs: from.is_bot,
      text: text ?? caption ?? '',
      buttons: reply_markup?.inline_keyboard.flat().map(button => button.text) ?? [],
      thread: message.message_thread_id === undefined ? undefined : String(message.message_thread_id),
      replyTo: reply_to_message && String(reply_to_message.message_id),
      file: file && { name: file.file_name ?? '', bytes: file.file_size },
      reactions: (here.reactions.get(message_id) ?? []).map(({ emoji }) => emoji),
    }
  }

  const platform = {
    settings: {
      ...{ token: bot.token, pool: pool.map(({ token }) => token), server: api.url() },
      // The stand-in takes whatever comes.
      perSecond: 1000,
    },
    direct,
    room,
    ann,
    stranger,
    say: async (by, jid, text, more = {}) => String(post(by, jid, contentOf(jid, by, text, more)).message_id),
    shown: async jid => roomOf(jid).messages.map(message => shownOf(roomOf(jid), message)),
    down: api.down,
    up: api.up,
    close: api.down,
    async another(number) {
      const person = { id: String(1001 + number), name: `Person ${number}` }
      world.addRoom({ id: Number(person.id), type: 'private', first_name: person.name }, [bot])
      return { person, jid: `telegram:${person.id}` }
    },
    async press(by, jid, id, label) {
      const message = messageIn(jid, id)
      const button = message.reply_markup?.inline_keyboard.flat().find(({ text }) => text === label)
      if (!button) throw new Error(`no button ${label}`)
      platform.pressData(by, message, button.callback_data)
    },
    async edit(_, jid, id, text) {
      const message = Object.assign(messageIn(jid, id), { text, edit_date: Math.floor(Date.now() / 1000) })
      world.tellAll(roomOf(jid), 'edited_message', message)
    },
    async react(by, jid, id, emoji) {
      const here = roomOf(jid)
      const message_id = Number(id)
      const all = here.reactions.get(message_id) ?? []
      const user = Number(by.id)
      const before = all.filter(one => one.user === user)
      here.reactions.set(message_id, [...all.filter(one => one.user !== user), { user, emoji }])
      if (here.chat.type !== 'private' && !here.admins.has(bot.user.id)) return
      world.tell(bot, 'message_reaction', {
        chat: here.chat,
        message_id,
        user: userOf(by),
        date: Math.floor(Date.now() / 1000),
        old_reaction: before.map(one => ({ type: 'emoji', emoji: one.emoji })),
        new_reaction: [{ type: 'emoji', emoji }],
      })
    },
    async rename(jid, name) {
      roomOf(jid).chat.title = name
      post(ann, jid, { new_chat_title: name })
    },
    isTyping: jid => Date.now() - roomOf(jid).lastTyping < typingSeenMs,
    refuse(times, how) {
      for (let i = 0; i < times; i++)
        api.refusals.push(
          how === 'limit'
            ? new ApiFailure(429, 'Too Many Requests: retry after 1', { retry_after: 1 })
            : new ApiFailure(502, 'Bad Gateway'),
        )
    },
    async repeat() {
      bot.updates.unshift(...bot.confirmed.splice(0))
      bot.waiting?.wake()
    },

    async swap(by, jid, texts) {
      const messages = texts.map(text => put(by, jid, { text, entities: [] }))
      for (const message of messages.toReversed()) world.tellAll(roomOf(jid), 'message', message)
    },

    // What is special to Telegram.
    api,
    bot,
    pool,
    post,
    messageIn,
    /** a button that is still shown somewhere, or was forged */
    pressData(by: Person, message: TelegramMessage, data: string) {
      const id = `query${++lastQuery}`
      api.queries.add(id)
      world.tell(bot, 'callback_query', {
        id,
        from: userOf(by),
        message,
        chat_instance: String(message.chat.id),
        data,
      })
      return id
    },
    /** Somebody has the bot's token replaced at @BotFather. */
    revoke() {
      world.bots.delete(bot.token)
      bot.waiting?.wake()
    },
    /** A group becomes a supergroup: both say so, and the old one takes nothing more. */
    migrate(jid: string, to: number) {
      const before = roomOf(jid)
      const members = [...world.bots.values()].filter(({ user }) => before.bots.has(user.id))
      world.addRoom({ id: to, type: 'supergroup', title: before.chat.title ?? '' }, members)
      before.movedTo = to
      post(ann, jid, { migrate_to_chat_id: to })
      post(ann, `telegram:${to}`, { migrate_from_chat_id: before.chat.id })
      return `telegram:${to}`
    },
  } satisfies Platform & Record<string, unknown>
  return platform
}
