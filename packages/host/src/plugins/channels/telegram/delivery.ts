import type { ReactionTypeEmoji } from 'grammy/types'
import { oneLine } from '../../../base/visible-text.ts'
import { withSender } from '../../../chat/channels/sender.ts'
import { type Delivered, DeliveryError, type Outgoing, type Part } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { renderMarkdown } from '../markdown.ts'
import { type Bot, TelegramRefusal } from './bot.ts'
import { keyboardOf } from './buttons.ts'
import { html } from './markup.ts'
import { chatIn, jidOf } from './said.ts'

export interface Delivery {
  send(message: Outgoing, part: Part): Promise<string | undefined>
  edit(delivered: Delivered, message: Outgoing): Promise<void>
}

export interface DeliveryOptions {
  bot: Bot
  /** further bots of ours, one of which may have said what is to be changed */
  others: readonly Bot[]
  /** the bot that shows a sender's name; undefined: the name is put before the text */
  botFor(sender: string, jid: string): Promise<Bot | undefined>
  readFile(id: string): Promise<Buffer | undefined>
  moved(from: string, to: string): Promise<void>
  /** Telegram has asked to wait */
  limited(ms: number): void
}

export const longestMessage = 4096
export const longestName = 64
const largestFile = 50_000_000
const largestPhoto = 10_000_000
const photoTypes: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/webp'])
/** messages with files that broke off, of which it is known what has arrived */
const mostUnfinished = 1000

/** Whom it is for: fields that every method has which sends something. */
interface Address {
  chat_id: number
  message_thread_id?: number
  reply_parameters?: { message_id: number; allow_sending_without_reply: true }
}

const unfitMarkup = /can't parse entities|message is too long|text is empty|text must be non-empty/i
/** Whoever sees the same words already sees what there is to see. */
const isUnchanged = (error: unknown) =>
  error instanceof TelegramRefusal && error.says(/message is not modified/)

export function createDelivery(options: DeliveryOptions): Delivery {
  const { bot } = options
  /** by the key of a part: what of it has arrived, so that the next attempt goes on from there */
  const unfinished = new Map<string, { id: string | undefined; files: number }>()

  /** Formatted where Telegram takes it, otherwise as it was written. */
  const written = async <T>(
    { text, kind, card }: Outgoing,
    write: (words: { text: string; parse_mode?: 'HTML' }) => Promise<T>,
  ): Promise<T> => {
    // What somebody is to decide about is shown to the letter.
    const isExact = kind === 'approval' || card?.kind === 'approval'
    const formatted = isExact ? '' : renderMarkdown(text, html)
    if (formatted === '') return write({ text })
    try {
      return await write({ text: formatted, parse_mode: 'HTML' })
    } catch (error) {
      if (!(error instanceof TelegramRefusal && error.says(unfitMarkup))) throw error
      return write({ text })
    }
  }

  /** Follows a chat that has become a supergroup, and leaves a topic that is no more. */
  const reach = async <T>(address: Address, work: (address: Address) => Promise<T>): Promise<T> => {
    try {
      return await work(address)
    } catch (error) {
      if (!(error instanceof TelegramRefusal)) throw error
      if (error.movedTo !== undefined) {
        await options.moved(jidOf(address.chat_id), jidOf(error.movedTo))
        return work({ ...address, chat_id: error.movedTo })
      }
      const { message_thread_id, ...chat } = address
      if (message_thread_id !== undefined && error.says(/thread not found/)) return work(chat)
      throw error
    }
  }

  const write = (by: Bot, address: Address, message: Outgoing): Promise<string> =>
    reach(address, to =>
      written(message, async words => {
        const keyboard = keyboardOf(message.card)
        const sent = await by.ask((api, signal) =>
          api.sendMessage(
            {
              ...to,
              ...words,
              // A preview would have Telegram's servers fetch any address that an agent writes.
              link_preview_options: { is_disabled: true },
              ...(keyboard.inline_keyboard.length > 0 && { reply_markup: keyboard }),
            },
            signal,
          ),
        )
        return String(sent.message_id)
      }),
    )

  const sendFile = async (by: Bot, address: Address, file: Attachment): Promise<string> => {
    const content = await options.readFile(file.id)
    const instead =
      content === undefined
        ? `[${file.name} is no longer kept.]`
        : content.length > largestFile
          ? `[${file.name} is too large for Telegram: a bot may send 50 MB.]`
          : undefined
    if (content === undefined || instead !== undefined) {
      const text = instead ?? ''
      const sent = await reach(address, to =>
        by.ask((api, signal) => api.sendMessage({ ...to, text }, signal)),
      )
      return String(sent.message_id)
    }
    return reach(address, async to => {
      if (photoTypes.has(file.type) && content.length <= largestPhoto) {
        const photo = await by.upload(content, file.name)
        try {
          const sent = await by.ask((api, signal) => api.sendPhoto({ ...to, photo }, signal))
          return String(sent.message_id)
        } catch (error) {
          // One that is too wide, or broken, is a file like any other.
          if (!(error instanceof TelegramRefusal && error.says(/IMAGE|PHOTO/))) throw error
        }
      }
      const document = await by.upload(content, file.name)
      const sent = await by.ask((api, signal) =>
        api.sendDocument({ ...to, document, disable_content_type_detection: true }, signal),
      )
      return String(sent.message_id)
    })
  }

  const sendAll = async (by: Bot, address: Address, message: Outgoing, { key }: Part) => {
    const progress = unfinished.get(key) ?? { id: undefined, files: 0 }
    if (!unfinished.has(key) && unfinished.size >= mostUnfinished) unfinished.clear()
    unfinished.set(key, progress)
    if (message.text.trim() !== '') progress.id ??= await write(by, address, message)
    for (const file of (message.attachments ?? []).slice(progress.files)) {
      const id = await sendFile(by, address, file)
      // What is changed later is the text.
      progress.id ??= id
      progress.files++
    }
    unfinished.delete(key)
    return progress.id
  }

  const react = async (address: Address, { messageId, text }: Outgoing) => {
    const message_id = Number(messageId ?? Number.NaN)
    if (!Number.isSafeInteger(message_id))
      throw new DeliveryError('There is no message to react to.', { isFinal: true })
    // Telegram knows hearts and the like without the sign that asks for a colourful one; it refuses what it does not know.
    const emoji = text.trim().replaceAll('\ufe0f', '') as ReactionTypeEmoji['emoji']
    const reply_parameters = { message_id, allow_sending_without_reply: true } as const
    await reach(address, async to => {
      try {
        await bot.ask((api, signal) =>
          api.setMessageReaction(
            { chat_id: to.chat_id, message_id, reaction: [{ type: 'emoji', emoji }] },
            signal,
          ),
        )
      } catch (error) {
        if (!(error instanceof TelegramRefusal && error.says(/REACTION/))) throw error
        await bot.ask((api, signal) => api.sendMessage({ ...to, reply_parameters, text }, signal))
      }
    })
    return undefined
  }

  const send = async (message: Outgoing, part: Part): Promise<string | undefined> => {
    const address: Address = {
      chat_id: chatIn(message.jid),
      ...(message.thread !== undefined && { message_thread_id: Number(message.thread) }),
      ...(message.replyTo !== undefined &&
        part.number === 1 && {
          reply_parameters: { message_id: Number(message.replyTo), allow_sending_without_reply: true },
        }),
    }
    if (message.kind === 'reaction') return react(address, message)
    if (message.sender === null || options.others.length === 0) return sendAll(bot, address, message, part)
    const name = shownName(message.sender)
    // Elsewhere the bots do not have the same numbers for messages, or no chat with the person.
    const by = isSupergroup(address.chat_id) ? await options.botFor(name, message.jid) : undefined
    if (by) {
      try {
        return await sendAll(by, address, message, part)
      } catch (error) {
        // It has not been let into this group.
        if (!(error instanceof TelegramRefusal && error.isFinal)) throw error
      }
    }
    const text = part.number === 1 ? withSender(name, message.text) : message.text
    return sendAll(bot, address, { ...message, text }, part)
  }

  const edit = async ({ jid, id }: Delivered, message: Outgoing) => {
    const reply_markup = keyboardOf(message.card)
    const by = (one: Bot) =>
      reach({ chat_id: chatIn(jid) }, ({ chat_id }) =>
        written(message, words =>
          one.ask((api, signal) =>
            api.editMessageText(
              {
                chat_id,
                message_id: Number(id),
                ...words,
                link_preview_options: { is_disabled: true },
                reply_markup,
              },
              signal,
            ),
          ),
        ),
      )
    for (const [index, one] of [bot, ...options.others].entries()) {
      try {
        await by(one)
        return
      } catch (error) {
        if (isUnchanged(error)) return
        const isAnothers =
          error instanceof TelegramRefusal && (error.code === 403 || error.says(/can't be edited|not found/))
        if (!isAnothers || index === options.others.length) throw error
      }
    }
  }

  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof TelegramRefusal)) throw error
      const { message, retryAfterMs, isFinal } = error
      if (retryAfterMs === undefined) throw new DeliveryError(message, { isFinal })
      options.limited(retryAfterMs)
      throw new DeliveryError(message, { retryAfterMs })
    }
  }

  return {
    send: (message, part) => told(() => send(message, part)),
    edit: (delivered, message) => told(() => edit(delivered, message)),
  }
}

const isSupergroup = (chat: number) => String(chat).startsWith('-100')

/** A name that fits a bot, cannot end its own emphasis, and begins no line of its own. */
const shownName = (sender: string): string =>
  oneLine(sender.replaceAll('*', ' ')).trim().slice(0, longestName).toWellFormed() || 'agent'
