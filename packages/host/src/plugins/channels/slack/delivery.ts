import type { KnownBlock } from '@slack/types'
import { oneLine } from '../../../base/visible-text.ts'
import { withSender } from '../../../chat/channels/sender.ts'
import { type Delivered, DeliveryError, type Outgoing, type Part } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { type SlackApi, SlackRefusal } from './api.ts'
import { written } from './blocks.ts'
import { nameOfEmoji } from './emoji.ts'
import { chatIn } from './said.ts'

export interface Delivery {
  send(message: Outgoing, part: Part): Promise<string | undefined>
  edit(delivered: Delivered, message: Outgoing): Promise<void>
}

/** what a person reads in one message; Slack takes 4,000, and signs that are escaped count as several */
export const longestMessage = 3000
const longestName = 64
/** messages with files that broke off, of which it is known what has arrived */
const mostUnfinished = 1000

/** Beside the names of senders, so that they are told apart at a glance; always the same for a name. */
const icons =
  'robot_face owl fox_face octopus hatched_chick bee penguin snail turtle whale parrot hedgehog'.split(' ')

interface Address {
  channel: string
  thread_ts?: string
}

/** Names in the words call nobody, and Slack's servers fetch no address that an agent writes. */
const harmless = { parse: 'none', link_names: false } as const
const withoutPreviews = { unfurl_links: false, unfurl_media: false } as const

export function createDelivery(options: {
  api: SlackApi
  readFile(id: string): Promise<Buffer | undefined>
  /** Slack has asked to wait */
  limited(ms: number): void
}): Delivery {
  const { api } = options
  /** by the key of a part: what of it has arrived, so that the next attempt goes on from there */
  const unfinished = new Map<string, { id: string | undefined; files: number }>()
  /** false: the app may not speak by other names */
  let showsNames = true

  const post = async (address: Address, text: string, blocks: KnownBlock[], sender: string | undefined) => {
    const { ts } = await api.ask(web =>
      web.chat.postMessage({
        ...address,
        text,
        ...(blocks.length > 0 && { blocks }),
        ...harmless,
        ...withoutPreviews,
        ...(sender !== undefined && { username: sender, icon_emoji: iconOf(sender) }),
      }),
    )
    return ts
  }

  const write = async (address: Address, message: Outgoing, part: Part): Promise<string | undefined> => {
    const sender = message.sender === null ? undefined : shownName(message.sender)
    if (sender !== undefined && showsNames) {
      const { text, blocks } = written(message)
      try {
        return await post(address, text, blocks, sender)
      } catch (error) {
        if (!(error instanceof SlackRefusal && error.code === 'missing_scope')) throw error
        showsNames = false
      }
    }
    const isNamed = sender !== undefined && part.number === 1
    const { text, blocks } = written(
      isNamed ? { ...message, text: withSender(sender, message.text) } : message,
    )
    return post(address, text, blocks, undefined)
  }

  const sendFile = async (address: Address, { id, name }: Attachment) => {
    const content = await options.readFile(id)
    if (content === undefined || content.length === 0) {
      const why = content === undefined ? 'is no longer kept' : 'is empty, and Slack takes no empty files'
      await post(address, written({ text: `[${name} ${why}.]`, kind: 'text' }).text, [], undefined)
      return
    }
    const { upload_url, file_id } = await api.ask(web =>
      web.files.getUploadURLExternal({ filename: name, length: content.length }),
    )
    if (upload_url === undefined || file_id === undefined) throw new SlackRefusal('no_upload_address')
    await api.upload(upload_url, content)
    const { channel, thread_ts } = address
    await api.ask(web =>
      web.files.completeUploadExternal({
        files: [{ id: file_id, title: name }],
        channel_id: channel,
        ...(thread_ts !== undefined && { thread_ts }),
      }),
    )
  }

  const react = async (address: Address, { messageId, text }: Outgoing) => {
    if (messageId === null) throw new DeliveryError('There is no message to react to.', { isFinal: true })
    const { channel } = address
    const name = nameOfEmoji(text)
    try {
      if (name === undefined) throw new SlackRefusal('invalid_name')
      await api.ask(web => web.reactions.add({ channel, timestamp: messageId, name }))
    } catch (error) {
      if (!(error instanceof SlackRefusal)) throw error
      if (error.code === 'already_reacted') return
      // An emoji that Slack does not have is an answer instead.
      if (error.code !== 'invalid_name' && error.code !== 'too_many_emoji') throw error
      const words = written({ text, kind: 'text' })
      await post({ thread_ts: messageId, ...address }, words.text, words.blocks, undefined)
    }
  }

  const send = async (message: Outgoing, part: Part): Promise<string | undefined> => {
    const thread_ts = message.thread ?? message.replyTo
    const address = { channel: chatIn(message.jid), ...(thread_ts !== undefined && { thread_ts }) }
    if (message.kind === 'reaction') {
      await react(address, message)
      return undefined
    }
    const progress = unfinished.get(part.key) ?? { id: undefined, files: 0 }
    if (!unfinished.has(part.key) && unfinished.size >= mostUnfinished) unfinished.clear()
    unfinished.set(part.key, progress)
    if (message.text.trim() !== '') progress.id ??= await write(address, message, part)
    for (const file of (message.attachments ?? []).slice(progress.files)) {
      await sendFile(address, file)
      progress.files++
    }
    unfinished.delete(part.key)
    return progress.id
  }

  const edit = async ({ jid, id }: Delivered, message: Outgoing) => {
    const { text, blocks } = written(message)
    // Blocks that are not named again would stay, buttons and all.
    await api.ask(web => web.chat.update({ channel: chatIn(jid), ts: id, text, blocks, ...harmless }))
  }

  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof SlackRefusal)) throw error
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

/** A name that cannot end its own emphasis, and begins no line of its own. */
const shownName = (sender: string): string =>
  oneLine(sender.replaceAll('*', ' ')).trim().slice(0, longestName).toWellFormed() || 'agent'

const iconOf = (name: string): string => {
  const sum = [...name].reduce((total, character) => total + (character.codePointAt(0) ?? 0), 0)
  return `:${icons[sum % icons.length]}:`
}
