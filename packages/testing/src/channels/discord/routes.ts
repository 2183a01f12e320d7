import { z } from 'zod'
import { failures } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { type Channel, channelObject, type Message, type Webhook, type World } from './world.ts'

/** The routes of Discord's HTTP API that the channel uses: https://docs.discord.com/developers/reference */

export interface Interaction {
  id: string
  token: string
  at: number
  isAnswered: boolean
}

export interface Notice {
  kind: 'deferred' | 'reply' | 'follow-up'
  text: string | undefined
  isEphemeral: boolean
}

interface RouteContext {
  world: World
  gateway: Gateway
  interactions: Map<string, Interaction>
  notices: Notice[]
  gatewayUrl(): string
  fileUrl(id: string): string
}

interface Given {
  ids: readonly string[]
  query: URLSearchParams
  body: unknown
  files: readonly File[]
}

type Handle = (given: Given, context: RouteContext) => unknown

const longestContent = 2000
const largestFile = 10 * 1024 * 1024
const nonceMs = 300_000
const answerMs = 3000
const tokenMs = 900_000

const button = z.object({
  type: z.literal(2),
  style: z.number().min(1).max(4),
  label: z.string().min(1).max(80),
  custom_id: z.string().min(1).max(100),
})
const rows = z
  .array(z.object({ type: z.literal(1), components: z.array(button).min(1).max(5) }))
  .max(5)
  .refine(all => {
    const ids = all.flatMap(({ components }) => components.map(({ custom_id }) => custom_id))
    return new Set(ids).size === ids.length
  }, 'custom_id cannot be duplicated')
const messageBody = z.object({
  content: z.string().max(longestContent).optional(),
  embeds: z.array(z.object({ description: z.string().max(4096) })).optional(),
  components: rows.optional(),
  flags: z.number().optional(),
  allowed_mentions: z.object({ parse: z.array(z.string()).default([]) }).optional(),
  nonce: z.string().max(25).optional(),
  enforce_nonce: z.boolean().optional(),
  message_reference: z
    .object({ message_id: z.string(), fail_if_not_exists: z.boolean().default(true) })
    .optional(),
  username: z.string().min(1).max(80).optional(),
})
type MessageBody = z.output<typeof messageBody>

function parsed<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw failures.invalid(
    result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
  )
}

function channelOf({ world }: RouteContext, id = ''): Channel {
  const channel = world.channels.get(id)
  if (!channel) throw failures.unknownChannel()
  if (channel.denied.has('view')) throw failures.missingAccess()
  return channel
}

function messageOf(channel: Channel, id: string | undefined): Message {
  const message = channel.messages.find(one => one.id === id)
  if (!message) throw failures.unknownMessage()
  return message
}

/** Whom a text calls: everybody it names, unless the request allows fewer. */
function mentionsIn({ world }: RouteContext, content: string, allowed: MessageBody['allowed_mentions']) {
  const may = (what: string) => allowed === undefined || allowed.parse.includes(what)
  const ids = [...content.matchAll(/<@!?(\d+)>/g)].map(([, id = '']) => id)
  return {
    mentions: may('users') ? ids.flatMap(id => world.users.get(id) ?? []) : [],
    mention_everyone: may('everyone') && /@(?:everyone|here)\b/.test(content),
    mention_roles: may('roles') ? [...content.matchAll(/<@&(\d+)>/g)].map(([, id = '']) => id) : [],
  }
}

async function create(
  context: RouteContext,
  channel: Channel,
  { body, files }: Pick<Given, 'body' | 'files'>,
  by: Pick<Message, 'author'> & Partial<Message>,
): Promise<Message> {
  const { world } = context
  const given = parsed(messageBody, body ?? {})
  if (channel.denied.has('send')) throw failures.missingPermissions()
  if (channel.isLocked) throw failures.lockedThread()
  const before = given.enforce_nonce
    ? [...world.channels.values()]
        .flatMap(({ messages }) => messages)
        .find(one => one.nonce === given.nonce && one.author.id === by.author.id && isRecent(one))
    : undefined
  if (before) return before
  const content = (given.content ?? '').trim()
  if (content === '' && !given.embeds?.length && files.length === 0) throw failures.empty()
  if (files.some(({ size }) => size > largestFile)) throw failures.tooLarge()
  const reference = given.message_reference
  const answered = reference && channel.messages.find(({ id }) => id === reference.message_id)
  if (reference && !answered && reference.fail_if_not_exists)
    throw failures.invalid('message_reference: Unknown message')
  const attachments = await Promise.all(
    files.map(async file =>
      world.addFile(file.name, Buffer.from(await file.arrayBuffer()), context.fileUrl, file.type),
    ),
  )
  const message: Message = {
    id: world.nextId(),
    channel_id: channel.id,
    content,
    timestamp: new Date().toISOString(),
    edited_timestamp: null,
    type: answered ? 19 : 0,
    ...mentionsIn(context, content, given.allowed_mentions),
    attachments,
    embeds: given.embeds ?? [],
    components: given.components ?? [],
    flags: given.flags ?? 0,
    ...(given.nonce !== undefined && { nonce: given.nonce }),
    ...(answered && {
      message_reference: { message_id: answered.id, channel_id: channel.id },
      referenced_message: answered,
    }),
    ...by,
  }
  channel.messages.push(message)
  // Whoever writes in a thread brings it back.
  channel.isArchived = false
  context.gateway.dispatch('MESSAGE_CREATE', { ...message, guild_id: channel.guild_id }, channel)
  return message
}

const isRecent = ({ timestamp }: Message) => Date.now() - Date.parse(timestamp) < nonceMs

function change(context: RouteContext, message: Message, body: unknown): Message {
  const given = parsed(messageBody, body)
  const content = given.content?.trim() ?? message.content
  if (content === '' && !(given.embeds ?? message.embeds).length && message.attachments.length === 0)
    throw failures.empty()
  return Object.assign(message, {
    content,
    ...mentionsIn(context, content, given.allowed_mentions),
    ...(given.embeds && { embeds: given.embeds }),
    ...(given.components && { components: given.components }),
    ...(given.flags !== undefined && { flags: given.flags }),
    edited_timestamp: new Date().toISOString(),
  })
}

/** A webhook by its token, and the channel or thread that a request means. */
function webhookOf(
  context: RouteContext,
  [id = '', token]: readonly string[],
  query: URLSearchParams,
): [Webhook, Channel] {
  const webhook = context.world.webhooks.get(id)
  if (webhook?.token !== token || !webhook) throw failures.unknownWebhook()
  const thread = query.get('thread_id')
  const channel = channelOf(context, thread ?? webhook.channel_id)
  if (thread !== null && channel.parent_id !== webhook.channel_id) throw failures.unknownChannel()
  return [webhook, channel]
}

function note({ notices }: RouteContext, kind: Notice['kind'], body: unknown): void {
  const { content, flags } = parsed(
    z.object({ content: z.string().min(1).max(2000), flags: z.number().default(0) }),
    body,
  )
  notices.push({ kind, text: content, isEphemeral: (flags & 64) !== 0 })
}

const id = '(\\d{15,20})'
const routes: Readonly<Record<string, Handle>> = {
  'GET /users/@me': (_, { world }) => world.bot,
  'GET /users/@me/guilds': (_, { world }) => [...world.guilds.values()].map(({ id, name }) => ({ id, name })),
  'GET /applications/@me': (_, { world }) => world.application,
  'GET /gateway/bot': (_, { gateway, gatewayUrl }) => ({
    url: gatewayUrl(),
    shards: 1,
    session_start_limit: {
      total: 1000,
      remaining: gateway.state.remaining,
      reset_after: 14_400_000,
      max_concurrency: gateway.state.maxConcurrency,
    },
  }),
  [`GET /users/${id}`]: ({ ids }, { world }) => {
    const user = world.users.get(ids[0] ?? '')
    if (!user) throw failures.unknownUser()
    return user
  },
  [`GET /channels/${id}`]: ({ ids }, context) => channelObject(channelOf(context, ids[0])),
  [`GET /channels/${id}/messages`]: ({ ids, query }, context) => {
    const { messages } = channelOf(context, ids[0])
    const after = BigInt(query.get('after') ?? 0)
    const limit = parsed(z.coerce.number().min(1).max(100), query.get('limit') ?? 50)
    const asked = messages.filter(one => BigInt(one.id) > after).slice(0, limit)
    const intents = (context.world.application.flags & (1 << 19)) === 0 ? 0 : 1 << 15
    return asked.toReversed().map(message => context.gateway.readable(message, intents))
  },
  [`POST /channels/${id}/messages`]: (given, context) =>
    create(context, channelOf(context, given.ids[0]), given, { author: context.world.bot }),
  [`PATCH /channels/${id}/messages/${id}`]: ({ ids, body }, context) => {
    const message = messageOf(channelOf(context, ids[0]), ids[1])
    if (message.author.id !== context.world.bot.id) throw failures.anothersMessage()
    return change(context, message, body)
  },
  [`PUT /channels/${id}/messages/${id}/reactions/([^/]+)/@me`]: (
    { ids: [channelId, messageId, emoji = ''] },
    context,
  ) => {
    const channel = channelOf(context, channelId)
    const message = messageOf(channel, messageId)
    if (!/^\p{RGI_Emoji}$/v.test(emoji)) throw failures.unknownEmoji()
    const all = channel.reactions.get(message.id) ?? []
    channel.reactions.set(message.id, [...all, { user: context.world.bot.id, emoji }])
  },
  [`POST /channels/${id}/typing`]: ({ ids }, context) => {
    channelOf(context, ids[0]).lastTyping = Date.now()
  },
  [`GET /channels/${id}/webhooks`]: ({ ids }, context) => {
    const channel = channelOf(context, ids[0])
    if (channel.denied.has('webhooks')) throw failures.missingPermissions()
    return [...context.world.webhooks.values()].filter(({ channel_id }) => channel_id === channel.id)
  },
  [`POST /channels/${id}/webhooks`]: ({ ids, body }, context) => {
    const { world } = context
    const channel = channelOf(context, ids[0])
    const { name } = parsed(z.object({ name: z.string().min(1).max(80) }), body)
    if (/clyde|discord/i.test(name)) throw failures.invalid('name: Webhook name cannot contain it')
    const webhook = {
      id: world.nextId(),
      token: `hook-${world.nextId()}`,
      name,
      channel_id: channel.id,
      application_id: world.application.id,
    }
    world.webhooks.set(webhook.id, webhook)
    return webhook
  },
  [`POST /webhooks/${id}/([\\w-]+)`]: (given, context) => {
    const { ids, query, body } = given
    const pressed = context.interactions.get(ids[1] ?? '')
    if (ids[0] === context.world.application.id && pressed) {
      if (!pressed.isAnswered || Date.now() - pressed.at > tokenMs) throw failures.unknownWebhook()
      return note(context, 'follow-up', body)
    }
    const [webhook, channel] = webhookOf(context, ids, query)
    const { username = webhook.name } = parsed(messageBody, body ?? {})
    if (/clyde|discord|[@#:]|```/i.test(username)) throw failures.invalid('username: cannot contain it')
    return create(context, channel, given, {
      author: { id: webhook.id, username, global_name: null, bot: true },
      webhook_id: webhook.id,
      ...(webhook.application_id && { application_id: webhook.application_id }),
    })
  },
  [`PATCH /webhooks/${id}/([\\w-]+)/messages/${id}`]: ({ ids, query, body }, context) => {
    const [webhook, channel] = webhookOf(context, ids, query)
    const message = messageOf(channel, ids[2])
    if (message.webhook_id !== webhook.id) throw failures.unknownMessage()
    return change(context, message, body)
  },
  [`POST /interactions/${id}/([\\w-]+)/callback`]: ({ ids, body }, context) => {
    const pressed = context.interactions.get(ids[1] ?? '')
    if (pressed?.id !== ids[0] || !pressed || Date.now() - pressed.at > answerMs)
      throw failures.unknownInteraction()
    if (pressed.isAnswered) throw failures.acknowledged()
    const { type, data } = parsed(
      z.object({ type: z.union([z.literal(4), z.literal(6)]), data: z.unknown().optional() }),
      body,
    )
    pressed.isAnswered = true
    if (type === 4) note(context, 'reply', data)
    else context.notices.push({ kind: 'deferred', text: undefined, isEphemeral: false })
  },
}

const patterns = Object.entries(routes).map(([route, handle]) => {
  const [method = '', path = ''] = route.split(' ')
  return { method, path: new RegExp(`^${path}$`), handle }
})

export function routeFor(method: string, path: string) {
  for (const route of patterns) {
    const match = route.method === method ? route.path.exec(path) : null
    if (match) return { handle: route.handle, ids: match.slice(1) }
  }
  return undefined
}
