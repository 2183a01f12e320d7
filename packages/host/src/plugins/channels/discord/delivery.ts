import { createHash } from 'node:crypto'
import type { RawFile } from '@discordjs/rest'
import { oneLine } from '../../../base/visible-text.ts'
import { withSender } from '../../../chat/channels/sender.ts'
import { type Delivered, DeliveryError, type Outgoing, type Part } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { renderMarkdown } from '../markdown.ts'
import { type DiscordApi, fileMs } from './api.ts'
import { buttonsOf } from './buttons.ts'
import { discordMarkdown, literal } from './markup.ts'
import { channelIn, type Places } from './places.ts'
import { codes, DiscordLimit, DiscordRefusal, isRefusal } from './refusals.ts'
import type { Webhook, Webhooks } from './webhooks.ts'

export interface Delivery {
  send(message: Outgoing, part: Part): Promise<string | undefined>
  edit(delivered: Delivered, message: Outgoing): Promise<void>
}

export interface DeliveryOptions {
  discord: DiscordApi
  webhooks: Webhooks
  places: Places
  readFile(id: string): Promise<Buffer | undefined>
  /** what tells the keys of this host from those of another one with the same bot */
  salt(): string
  /** Discord has asked to wait */
  limited(ms: number): void
}

export const longestMessage = 2000
export const longestName = 64
/** messages with files that broke off, of which it is known what has arrived */
const mostUnfinished = 1000
const suppressEmbeds = 4
const nameless: ReadonlySet<string> = new Set(['everyone', 'here'])

/** Nobody is called by anything that an agent writes. */
export const silent = { parse: [], replied_user: false }

/** Where a message goes: to the channel, or to a thread in it. */
interface Target {
  channel: string
  thread: string | undefined
}

interface Piece {
  body: ReturnType<typeof bodyOf>
  files?: RawFile[]
  /** the same each time this piece is tried */
  key: string
}

type Write = (target: Target, piece: Piece) => Promise<string>

/** A thread that is gone, or closed for good. */
const isClosed = (error: unknown) =>
  isRefusal(error, codes.unknownChannel, codes.archivedThread, codes.lockedThread)
const isTooLarge = (error: unknown) =>
  error instanceof DiscordRefusal && (error.status === 413 || error.code === codes.tooLarge)

export function createDelivery(options: DeliveryOptions): Delivery {
  const { discord, webhooks } = options
  /** by the key of a part: what of it has arrived, so that the next attempt goes on from there */
  const unfinished = new Map<string, { id: string | undefined; files: number }>()

  /** Leaves a thread that takes nothing more. */
  const reach = async <T>(target: Target, work: (target: Target) => Promise<T>): Promise<T> => {
    try {
      return await work(target)
    } catch (error) {
      if (target.thread === undefined || !isClosed(error)) throw error
      return work({ ...target, thread: undefined })
    }
  }

  const asBot =
    (replyTo: string | undefined): Write =>
    async ({ channel, thread }, { body, files, key }) => {
      const to = thread ?? channel
      const sent = await discord.ask(
        (api, signal) =>
          api.channels.createMessage(
            to,
            {
              ...body,
              ...(files && { files }),
              nonce: nonceOf(options.salt(), to, key),
              enforce_nonce: true,
              ...(replyTo !== undefined && {
                message_reference: { message_id: replyTo, fail_if_not_exists: false },
              }),
            },
            { signal },
          ),
        files && fileMs,
      )
      return sent.id
    }

  const asWebhook =
    ({ id, token }: Webhook, username: string): Write =>
    async ({ thread }, { body, files }) => {
      const sent = await discord.ask(
        (api, signal) =>
          api.webhooks.execute(
            id,
            token,
            { ...body, ...(files && { files }), username, wait: true, ...(thread && { thread_id: thread }) },
            { signal },
          ),
        files && fileMs,
      )
      return sent.id
    }

  const sendFile = async (write: Write, target: Target, file: Attachment, key: string): Promise<string> => {
    const content = await options.readFile(file.id)
    const instead = (text: string) =>
      reach(target, to => write(to, { body: bodyOf({ text }), key: `${key}!` }))
    if (content === undefined) return instead(`[${file.name} is no longer kept.]`)
    const files = [{ name: file.name, data: content, contentType: file.type }]
    try {
      return await reach(target, to => write(to, { body: bodyOf({ text: '' }), files, key }))
    } catch (error) {
      if (!isTooLarge(error)) throw error
      return instead(
        `[${file.name} is too large for Discord: a bot may send 10 MiB, in boosted servers more.]`,
      )
    }
  }

  const sendAll = async (write: Write, target: Target, message: Outgoing, { key }: Part) => {
    const progress = unfinished.get(key) ?? { id: undefined, files: 0 }
    if (!unfinished.has(key) && unfinished.size >= mostUnfinished) unfinished.clear()
    unfinished.set(key, progress)
    if (message.text.trim() !== '')
      progress.id ??= await reach(target, to => write(to, { body: bodyOf(message), key }))
    for (const file of (message.attachments ?? []).slice(progress.files)) {
      const id = await sendFile(write, target, file, `${key}:${progress.files}`)
      // What is changed later is the text.
      progress.id ??= id
      progress.files++
    }
    unfinished.delete(key)
    return progress.id
  }

  const react = async ({ channel, thread }: Target, { messageId, text }: Outgoing, { key }: Part) => {
    if (messageId === null || !/^\d+$/.test(messageId))
      throw new DeliveryError('There is no message to react to.', { isFinal: true })
    const emoji = text.trim()
    const within = async (to: string) => {
      try {
        await discord.ask((api, signal) => api.channels.addMessageReaction(to, messageId, emoji, { signal }))
      } catch (error) {
        if (!isRefusal(error, codes.unknownEmoji, codes.reactionBlocked, codes.invalidForm)) throw error
        await asBot(messageId)({ channel: to, thread: undefined }, { body: bodyOf({ text }), key })
      }
    }
    try {
      await within(thread ?? channel)
    } catch (error) {
      // The message may be one of the channel, and the answer one of the thread.
      const isElsewhere = isClosed(error) || isRefusal(error, codes.unknownMessage)
      if (thread === undefined || !isElsewhere) throw error
      await within(channel)
    }
    return undefined
  }

  const webhookFor = async (channel: string, name: string) => {
    const { guild } = await options.places.of(channel)
    return guild === undefined || !isWebhookName(name) ? undefined : webhooks.of(channel)
  }

  const send = async (message: Outgoing, part: Part): Promise<string | undefined> => {
    const target = { channel: channelIn(message.jid), thread: message.thread }
    if (message.kind === 'reaction') return react(target, message, part)
    const write = asBot(part.number === 1 ? message.replyTo : undefined)
    if (message.sender === null) return sendAll(write, target, message, part)
    const name = shownName(message.sender)
    const webhook = await webhookFor(target.channel, name)
    if (webhook) {
      try {
        return await sendAll(asWebhook(webhook, name), target, message, part)
      } catch (error) {
        // Somebody has deleted it: the next attempt makes another one.
        if (isRefusal(error, codes.unknownWebhook)) {
          webhooks.forget(target.channel)
          throw new Error(error.message)
        }
        throw error
      }
    }
    const text = part.number === 1 ? withSender(name, message.text) : message.text
    return sendAll(write, target, { ...message, text }, part)
  }

  const edit = async (delivered: Delivered, message: Outgoing) => {
    const channel = channelIn(delivered.jid)
    await reach({ channel, thread: delivered.thread }, async ({ thread }) => {
      const body = { embeds: [], ...bodyOf(message) }
      try {
        await discord.ask((api, signal) =>
          api.channels.editMessage(thread ?? channel, delivered.id, body, { signal }),
        )
      } catch (error) {
        const webhook = isRefusal(error, codes.anothersMessage) ? await webhooks.of(channel) : undefined
        if (!webhook) throw error
        const { id, token } = webhook
        await discord.ask((api, signal) =>
          api.webhooks.editMessage(
            id,
            token,
            delivered.id,
            { ...body, ...(thread && { thread_id: thread }) },
            { signal },
          ),
        )
      }
    })
  }

  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof DiscordRefusal) throw new DeliveryError(error.message, { isFinal: error.isFinal })
      if (!(error instanceof DiscordLimit)) throw error
      options.limited(error.retryAfterMs)
      throw new DeliveryError(error.message, { retryAfterMs: error.retryAfterMs })
    }
  }

  return {
    send: (message, part) => told(() => send(message, part)),
    edit: (delivered, message) => told(() => edit(delivered, message)),
  }
}

/** The text of a message in Discord's form, and its buttons. */
function bodyOf({ text, kind, card }: Pick<Outgoing, 'text'> & Partial<Pick<Outgoing, 'kind' | 'card'>>) {
  const others = { components: buttonsOf(card), allowed_mentions: silent }
  // What somebody is to decide about is shown to the letter. An embed has room for twice a message, and so for every
  // backslash that takes.
  const isExact = kind === 'approval' || card?.kind === 'approval'
  const written = text.toWellFormed()
  if (isExact) {
    const exact = literal(written)
    return exact.length <= longestMessage
      ? { content: exact, flags: suppressEmbeds, ...others }
      : { content: '', embeds: [{ description: exact }], flags: 0, ...others }
  }
  const rendered = renderMarkdown(written, discordMarkdown)
  const content = rendered === '' || rendered.length > longestMessage ? written : rendered
  // A preview would have Discord's servers fetch any address that an agent writes.
  return { content, flags: suppressEmbeds, ...others }
}

/** At most 25 characters, and another one for each chat: Discord would take the same one for a repeat anywhere. */
const nonceOf = (salt: string, channel: string, key: string): string =>
  createHash('sha256').update(`${salt}:${channel}:${key}`).digest('base64url').slice(0, 24)

/** https://docs.discord.com/developers/resources/webhook#create-webhook and what names of users may not have */
const isWebhookName = (name: string): boolean =>
  !/clyde|discord|[@#:]|```/i.test(name) && !nameless.has(name.toLowerCase())

/** A name that cannot end its own emphasis, and begins no line of its own. */
const shownName = (sender: string): string =>
  oneLine(sender.replaceAll('*', ' ')).trim().slice(0, longestName).toWellFormed() || 'agent'
