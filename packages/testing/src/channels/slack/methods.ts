import { z } from 'zod'
import { SlackFailure } from './failure.ts'
import { blocksOf, readMessage } from './formatting.ts'
import type { World, WorldChat, WorldMessage } from './world.ts'

/** The methods of https://docs.slack.dev/reference/methods that the channel uses, with the errors listed there. */
export interface MethodContext {
  world: World
  /** where this server is */
  url(path: string): string
  uploads: Map<string, { name: string; length: number; content?: Buffer }>
  /** what was shown to one person only */
  notices: { channel: string; user: string; text: string; thread_ts: string | undefined }[]
  /** whom the app's messages have called */
  calls: string[]
}
type Method = (given: Record<string, string>, context: MethodContext) => object

const longestUpdate = 4000
const reactionNames: ReadonlySet<string> = new Set(
  '+1 -1 heart fire tada eyes white_check_mark rocket'.split(' '),
)

const fromJson = <S extends z.ZodType>(schema: S) => z.preprocess(given => JSON.parse(String(given)), schema)
const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform(given => given === 'true')
const said = z.object({
  channel: z.string(),
  text: z.string().default(''),
  blocks: fromJson(z.unknown()).optional(),
  thread_ts: z.string().optional(),
  username: z.string().max(80).optional(),
  icon_emoji: z.string().optional(),
  parse: z.enum(['none', 'full', 'client']).optional(),
  link_names: flag,
  unfurl_links: flag,
})

function chatFor(world: World, id: string): WorldChat {
  const chat = world.chats.get(id)
  if (!chat) throw new SlackFailure('channel_not_found')
  if (!chat.is_member) throw new SlackFailure('not_in_channel')
  return chat
}
function writableChat(world: World, id: string): WorldChat {
  const chat = chatFor(world, id)
  if (chat.is_archived) throw new SlackFailure('is_archived')
  return chat
}
const needs = (world: World, scope: string) => {
  if (!world.app.scopes.has(scope)) throw new SlackFailure('missing_scope')
}
const historyScope = (chat: WorldChat) => (chat.is_im ? 'im:history' : 'channels:history')

/** Newest first, a page at a time; the cursor says how many came before. */
function page(messages: readonly object[], { limit = '100', cursor = '0' }: Record<string, string>) {
  const from = Number(cursor)
  const to = from + Number(limit)
  return {
    messages: messages.slice(from, to),
    has_more: to < messages.length,
    response_metadata: { next_cursor: to < messages.length ? String(to) : '' },
  }
}

function isWithin(
  { ts }: WorldMessage,
  { oldest = '0', latest, inclusive }: Record<string, string>,
): boolean {
  if (inclusive === 'true' && (ts === oldest || ts === latest)) return true
  return Number(ts) > Number(oldest) && (latest === undefined || Number(ts) < Number(latest))
}

export const methods: Readonly<Record<string, Method>> = {
  'auth.test': (_, { world: { app } }) => ({
    url: 'https://example.slack.com/',
    team: 'Example',
    user: 'hatch',
    team_id: 'T0',
    user_id: app.user,
    bot_id: app.bot,
  }),
  'chat.postMessage': (given, { world, calls }) => {
    needs(world, 'chat:write')
    const { channel, text, blocks, thread_ts, username, icon_emoji, parse, link_names } = said.parse(given)
    if (username !== undefined || icon_emoji !== undefined) needs(world, 'chat:write.customize')
    const chat = writableChat(world, channel)
    const shown = blocks === undefined ? [] : blocksOf(blocks)
    if (text === '' && shown.length === 0) throw new SlackFailure('no_text')
    calls.push(...readMessage(text, shown, link_names || parse === 'full').calls)
    const message = world.post(chat, {
      ...(username === undefined ? { user: world.app.user } : { subtype: 'bot_message', username }),
      ...(icon_emoji !== undefined && { icon_emoji }),
      bot_id: world.app.bot,
      text: text.slice(0, 40_000),
      ...(shown.length > 0 && { blocks: shown }),
      ...(thread_ts !== undefined && { thread_ts }),
    })
    return { channel, ts: message.ts, message }
  },
  'chat.update': (given, { world, calls }) => {
    needs(world, 'chat:write')
    const { channel, text, blocks, parse, link_names } = said.parse(given)
    const chat = writableChat(world, channel)
    const message = chat.messages.find(({ ts }) => ts === given.ts)
    if (!message) throw new SlackFailure('message_not_found')
    if (message.bot_id !== world.app.bot) throw new SlackFailure('cant_update_message')
    if (text.length > longestUpdate) throw new SlackFailure('msg_too_long')
    const previous_message = { ...message }
    // Blocks that are not given stay. Names in the words are looked for unless that is turned off.
    const shown = blocks === undefined ? (message.blocks ?? []) : blocksOf(blocks)
    calls.push(...readMessage(text, shown, link_names || (parse ?? 'client') !== 'none').calls)
    Object.assign(message, {
      text,
      blocks: shown,
      edited: { user: world.app.user, ts: world.nextTs() },
    })
    world.tell({
      type: 'message',
      subtype: 'message_changed',
      hidden: true,
      channel,
      channel_type: world.typeOf(chat),
      ts: world.nextTs(),
      message,
      previous_message,
    })
    return { channel, ts: message.ts, text }
  },
  'chat.postEphemeral': (given, { world, notices }) => {
    needs(world, 'chat:write')
    const { channel, text, thread_ts } = said.parse(given)
    writableChat(world, channel)
    if (!world.people.has(given.user ?? '')) throw new SlackFailure('user_not_in_channel')
    notices.push({ channel, user: given.user ?? '', text, thread_ts })
    return { message_ts: world.nextTs() }
  },
  'reactions.add': ({ channel = '', timestamp = '', name = '' }, { world }) => {
    needs(world, 'reactions:write')
    const chat = chatFor(world, channel)
    if (!chat.messages.some(({ ts }) => ts === timestamp)) throw new SlackFailure('message_not_found')
    if (!reactionNames.has(name)) throw new SlackFailure('invalid_name')
    const reaction = { ts: timestamp, user: world.app.user, name }
    if (chat.reactions.some(one => one.ts === timestamp && one.user === reaction.user && one.name === name))
      throw new SlackFailure('already_reacted')
    chat.reactions.push(reaction)
    world.tell({
      type: 'reaction_added',
      user: reaction.user,
      reaction: name,
      item: { type: 'message', channel, ts: timestamp },
      event_ts: world.nextTs(),
    })
    return {}
  },
  'conversations.info': ({ channel = '' }, { world }) => {
    const chat = chatFor(world, channel)
    needs(world, chat.is_im ? 'im:read' : 'channels:read')
    return { channel: described(chat) }
  },
  'users.conversations': (given, { world }) => {
    needs(world, 'channels:read')
    const all = [...world.chats.values()].filter(chat => chat.is_member && !chat.is_archived).map(described)
    const { messages, response_metadata } = page(all, given)
    return { channels: messages, response_metadata }
  },
  'conversations.history': (given, { world }) => {
    const chat = chatFor(world, given.channel ?? '')
    needs(world, historyScope(chat))
    const shown = chat.messages
      .filter(one => one.thread_ts === undefined || one.subtype === 'thread_broadcast')
      .filter(one => isWithin(one, given))
      .map(one => world.withReplies(chat, one))
    return page(shown.toReversed(), given)
  },
  'conversations.replies': (given, { world }) => {
    const chat = chatFor(world, given.channel ?? '')
    needs(world, historyScope(chat))
    const parent = chat.messages.find(({ ts }) => ts === given.ts)
    if (!parent) throw new SlackFailure('thread_not_found')
    const replies = chat.messages.filter(one => one.thread_ts === given.ts && isWithin(one, given))
    return page([world.withReplies(chat, parent), ...replies], given)
  },
  'users.info': ({ user = '' }, { world }) => {
    needs(world, 'users:read')
    const person = world.people.get(user)
    if (!person) throw new SlackFailure('user_not_found')
    return {
      user: { id: user, name: user.toLowerCase(), real_name: person.name, profile: { display_name: '' } },
    }
  },
  'files.info': ({ file = '' }, { world }) => {
    needs(world, 'files:read')
    const found = world.files.get(file)
    if (!found) throw new SlackFailure('file_not_found')
    return { file: { ...found.file, file_access: 'visible' } }
  },
  'files.getUploadURLExternal': ({ filename = '', length = '' }, { world, uploads, url }) => {
    needs(world, 'files:write')
    if (filename === '' || !(Number(length) > 0)) throw new SlackFailure('invalid_arguments')
    const id = `F9${uploads.size + 1}`
    uploads.set(id, { name: filename, length: Number(length) })
    return { upload_url: url(`upload/v1/${id}`), file_id: id }
  },
  'files.completeUploadExternal': (given, { world, uploads, url }) => {
    needs(world, 'files:write')
    const { files, channel_id, thread_ts } = z
      .object({
        files: fromJson(z.array(z.object({ id: z.string(), title: z.string().optional() })).min(1)),
        channel_id: z.string(),
        thread_ts: z.string().optional(),
      })
      .parse(given)
    const chat = writableChat(world, channel_id)
    const shared = files.map(({ id }) => {
      const { name, content } = uploads.get(id) ?? {}
      if (name === undefined || content === undefined) throw new SlackFailure('file_not_found')
      return world.addFile(name, content, url(''))
    })
    world.post(chat, {
      subtype: 'file_share',
      user: world.app.user,
      bot_id: world.app.bot,
      files: shared,
      ...(thread_ts !== undefined && { thread_ts }),
    })
    return { files: shared.map(({ id, name }) => ({ id, title: name })) }
  },
}

const described = ({ id, name, user, is_im, is_member, is_archived }: WorldChat) => ({
  id,
  ...(name !== undefined && { name }),
  ...(user !== undefined && { user }),
  is_im,
  is_mpim: false,
  is_member,
  is_archived,
})
