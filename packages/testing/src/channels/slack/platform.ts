import type { Person, Platform, Said, Shown } from '../platform.ts'
import { SlackFailure } from './failure.ts'
import { readMessage } from './formatting.ts'
import { startSlack } from './server.ts'
import type { WorldChat, WorldMessage } from './world.ts'

const ann: Person = { id: 'U0ANN', name: 'Ann' }
const stranger: Person = { id: 'U0MAL', name: 'Mallory' }
const direct = 'slack:D0ANN'
const room = 'slack:C0ROOM'

const emojis: Readonly<Record<string, string>> = { '👍': '+1', '🎉': 'tada', '❤️': 'heart', '👀': 'eyes' }
const emojiOf = (name: string) => Object.entries(emojis).find(([, one]) => one === name)?.[0] ?? `:${name}:`

/** The stand-in with an app, a chat with Ann, and a channel that the app is in. */
export async function openSlack(options: Parameters<typeof startSlack>[0] = {}) {
  const api = await startSlack(options)
  const { world } = api
  const { app } = world
  for (const { id, name } of [ann, stranger]) world.addPerson(id, name)
  world.addPerson(app.user, 'hatch')
  world.addChat('D0ANN', { is_im: true, user: ann.id })
  world.addChat('C0ROOM', { name: 'others' })

  const chatOf = (jid: string): WorldChat => {
    const found = world.chats.get(jid.replace('slack:', ''))
    if (!found) throw new Error(`no chat ${jid}`)
    return found
  }
  const messageIn = (jid: string, id: string): WorldMessage => {
    const found = chatOf(jid).messages.find(({ ts }) => ts === id)
    if (!found) throw new Error(`no message ${id} in ${jid}`)
    return found
  }
  const escaped = (text: string) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

  const threadFor = (jid: string, { thread, replyTo }: Said): string | undefined => {
    // A thread under what another app has said.
    if (thread === 'new')
      return world.post(chatOf(jid), { subtype: 'bot_message', bot_id: 'B0OTHER', text: 'build failed' }).ts
    return thread ?? (replyTo === undefined ? undefined : (messageIn(jid, replyTo).thread_ts ?? replyTo))
  }

  const contentOf = (by: Person, jid: string, text: string, more: Said): Partial<WorldMessage> => {
    const thread_ts = threadFor(jid, more)
    return {
      user: by.id,
      text: `${more.mention ? `<@${app.user}> ` : ''}${escaped(text)}`,
      ...(thread_ts !== undefined && { thread_ts }),
      ...(more.file && {
        subtype: 'file_share',
        files: [world.addFile(more.file.name, more.file.content, api.url(''))],
      }),
    }
  }

  const shownOf = (chat: WorldChat, message: WorldMessage): Shown => {
    const { ts, bot_id, text, blocks = [], thread_ts, files } = message
    const [file] = files ?? []
    return {
      id: ts,
      isOurs: bot_id === app.bot,
      text: readMessage(text, blocks, false).text,
      buttons: blocks.flatMap(block =>
        block.type === 'actions' ? block.elements.map(element => element.text.text) : [],
      ),
      thread: thread_ts,
      file: file && { name: file.name, bytes: file.size },
      reactions: chat.reactions.filter(one => one.ts === ts).map(({ name }) => emojiOf(name)),
    }
  }
  const changed = (jid: string, subtype: string, content: object) =>
    world.tell({
      type: 'message',
      subtype,
      hidden: true,
      channel: chatOf(jid).id,
      channel_type: world.typeOf(chatOf(jid)),
      ts: world.nextTs(),
      ...content,
    })

  const platform = {
    settings: { token: app.token, appToken: app.appToken, server: api.url('api/') },
    direct,
    room,
    ann,
    stranger,
    say: async (by, jid, text, more = {}) => world.post(chatOf(jid), contentOf(by, jid, text, more)).ts,
    shown: async jid => chatOf(jid).messages.map(message => shownOf(chatOf(jid), message)),
    down: api.down,
    up: api.up,
    close: api.down,
    async another(number) {
      const person = { id: `U0P${number}`, name: `Person ${number}` }
      world.addPerson(person.id, person.name)
      world.addChat(`D0P${number}`, { is_im: true, user: person.id })
      return { person, jid: `slack:D0P${number}` }
    },
    async press(by, jid, id, label) {
      const elements = (messageIn(jid, id).blocks ?? []).flatMap(block =>
        block.type === 'actions' ? block.elements : [],
      )
      const button = elements.find(({ text }) => text.text === label)
      if (!button) throw new Error(`no button ${label}`)
      platform.pressAction(by, jid, id, button.action_id)
    },
    async edit(by, jid, id, text) {
      const message = messageIn(jid, id)
      const previous_message = { ...message }
      Object.assign(message, { text: escaped(text), edited: { user: by.id, ts: world.nextTs() } })
      changed(jid, 'message_changed', { message, previous_message })
    },
    async remove(_, jid, id) {
      const previous_message = messageIn(jid, id)
      const chat = chatOf(jid)
      chat.messages = chat.messages.filter(({ ts }) => ts !== id)
      changed(jid, 'message_deleted', { deleted_ts: id, previous_message })
    },
    async react(by, jid, id, emoji) {
      const name = emojis[emoji] ?? emoji
      chatOf(jid).reactions.push({ ts: id, user: by.id, name })
      world.tell({
        type: 'reaction_added',
        user: by.id,
        reaction: name,
        item_user: app.user,
        item: { type: 'message', channel: chatOf(jid).id, ts: id },
        event_ts: world.nextTs(),
      })
    },
    async rename(jid, name) {
      const chat = chatOf(jid)
      chat.name = name
      world.tell({
        type: 'channel_rename',
        channel: { id: chat.id, name, created: 1 },
        event_ts: world.nextTs(),
      })
    },
    refuse(times, how) {
      for (let i = 0; i < times; i++)
        api.refusals.push(
          how === 'limit' ? new SlackFailure('ratelimited', 429, 1) : new SlackFailure('unavailable', 503),
        )
    },
    async repeat() {
      for (const told of api.acked.splice(0))
        if (told.type === 'events_api') api.put({ ...told, attempt: told.attempt + 1 })
    },

    async swap(by, jid, texts) {
      const messages = texts.map(text => world.put(chatOf(jid), { user: by.id, text }))
      for (const message of messages.toReversed()) world.announce(chatOf(jid), message)
    },
    /** another app, under her name */
    async forge(text) {
      const content = { subtype: 'bot_message', bot_id: 'B0OTHER', username: ann.name }
      world.post(chatOf(room), { ...content, text: `<@${app.user}> ${text}` })
    },

    // What is special to Slack.
    api,
    chatOf,
    messageIn,
    post: (jid: string, content: Partial<WorldMessage>) => world.post(chatOf(jid), content),
    /** a button that is still shown somewhere, or was forged */
    pressAction(by: Person, jid: string, id: string, action_id: string) {
      const { thread_ts } = messageIn(jid, id)
      api.tell('interactive', {
        type: 'block_actions',
        user: { id: by.id, username: by.name.toLowerCase(), team_id: 'T0' },
        container: {
          type: 'message',
          message_ts: id,
          channel_id: chatOf(jid).id,
          is_ephemeral: false,
          ...(thread_ts !== undefined && { thread_ts }),
        },
        channel: { id: chatOf(jid).id },
        actions: [{ type: 'button', action_id, block_id: 'b', action_ts: world.nextTs() }],
      })
    },
  } satisfies Platform & Record<string, unknown>
  return platform
}
