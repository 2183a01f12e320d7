import { z } from 'zod'
import {
  type ChannelHost,
  type Delivered,
  DeliveryError,
  type Outgoing,
  type Part,
} from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { type Button, buttonsOf, legendOf, recallCard, rememberCard } from './buttons.ts'
import { type Client, MatrixRefusal } from './client.ts'
import type { Crypto } from './crypto.ts'
import { encryptFile } from './encrypted-file.ts'
import { roomIn } from './events.ts'
import { htmlOf } from './markup.ts'
import type { Room, Rooms } from './rooms.ts'

export interface Delivery {
  send(message: Outgoing, part: Part): Promise<string | undefined>
  edit(delivered: Delivered, message: Outgoing): Promise<void>
}

export interface DeliveryOptions {
  client: Client
  crypto: Crypto
  rooms: Rooms
  memory: Pick<ChannelHost, 'recall' | 'remember'>
  /** the room that has replaced another */
  nowOf(room: string): string
  /** false: it is a room that we are only invited to */
  admits(room: string): Promise<boolean>
  readFile(id: string): Promise<Buffer | undefined>
  /** the server has asked to wait */
  limited(ms: number): void
}

/** An event may have 65,536 bytes, with what the server adds, and grows by a third when it is encrypted. */
const mostBytes = 45_000
/** A character has six bytes at most, so that words without their HTML always fit. */
export const longestMessage = 7000
/** what apps show that know nothing of changes */
const longestFallback = 500

const sentSchema = z.object({ event_id: z.string() })
const bytesOf = (content: object) => Buffer.byteLength(JSON.stringify(content))

export function createDelivery(options: DeliveryOptions): Delivery {
  const { client, crypto, rooms, memory } = options

  /** The server drops what it has had under the same key: a message that is tried again is shown once. */
  const put = async (room: Room, type: string, content: object, key: string): Promise<string> => {
    // Servers count reactions, so apps do not encrypt them.
    const isSecret = room.isEncrypted && type !== 'm.reaction'
    const body = isSecret ? await crypto.encrypt(room.id, type, content, room.users) : content
    const path = ['v3', 'rooms', room.id, 'send', isSecret ? 'm.room.encrypted' : type, key]
    return (await client.ask(sentSchema, 'PUT', path, { body })).event_id
  }

  const upload = async (content: Buffer, { type, name }: Attachment) => ({
    url: await client.upload(content, type, name),
  })
  const uploadEncrypted = async (content: Buffer) => {
    const { encrypted, describe } = encryptFile(content)
    return { file: describe(await client.upload(encrypted, 'application/octet-stream', undefined)) }
  }
  const sendFile = async (room: Room, file: Attachment, key: string, relation: object): Promise<string> => {
    const say = (text: string) => put(room, 'm.room.message', { ...wordsOf(text, true), ...relation }, key)
    const content = await options.readFile(file.id)
    if (content === undefined) return say(`[${file.name} is no longer kept.]`)
    try {
      const address = await (room.isEncrypted ? uploadEncrypted(content) : upload(content, file))
      const described = {
        msgtype: msgtypeOf(file.type),
        body: file.name,
        filename: file.name,
        info: { mimetype: file.type, size: content.length },
        'm.mentions': {},
      }
      return await put(room, 'm.room.message', { ...described, ...address, ...relation }, key)
    } catch (error) {
      if (!(error instanceof MatrixRefusal && error.status === 413)) throw error
      return say(`[${file.name} is too large for this homeserver.]`)
    }
  }

  const showButtons = async (
    room: Room,
    message: Outgoing,
    to: string,
    buttons: readonly Button[],
    key: string,
  ) => {
    const { card } = message
    if (!card || buttons.length === 0) return
    const shown = {
      kind: card.kind,
      id: card.card.id,
      buttons: buttons.map(({ emoji, press }) => ({ emoji, press })),
    }
    // Before anybody can press one.
    rememberCard(memory, to, { ...shown, reactions: [] })
    const reactions: string[] = []
    for (const [i, { emoji }] of buttons.entries())
      reactions.push(await put(room, 'm.reaction', annotation(to, emoji), `${key}-b${i}`))
    rememberCard(memory, to, { ...shown, reactions })
  }
  const hideButtons = async (room: Room, of: string) => {
    const card = recallCard(memory, of)
    for (const reaction of card?.reactions ?? [])
      await client.ask(sentSchema, 'PUT', ['v3', 'rooms', room.id, 'redact', reaction, `hide-${reaction}`], {
        body: {},
      })
    if (card) rememberCard(memory, of, undefined)
  }

  const react = async (room: Room, { messageId, text }: Outgoing, key: string): Promise<undefined> => {
    if (messageId === null) throw new DeliveryError('There is no message to react to.', { isFinal: true })
    try {
      await put(room, 'm.reaction', annotation(messageId, text.trim()), key)
    } catch (error) {
      if (!(error instanceof MatrixRefusal && error.code === 'M_DUPLICATE_ANNOTATION')) throw error
    }
  }

  const send = async (message: Outgoing, part: Part): Promise<string | undefined> => {
    const id = options.nowOf(roomIn(message.jid))
    // Whoever asked to be let in by an invitation reads nothing until the operator has decided.
    if (!(await options.admits(id))) return undefined
    const room = await rooms.get(id)
    // A data directory that was restored counts from where it was: the time tells its messages apart.
    const key = `${part.key}-${message.createdAt}`
    if (message.kind === 'reaction') return react(room, message, key)
    const relation = relationOf(message, part)
    const buttons = buttonsOf(message.card, room.isEncrypted)
    let first: string | undefined
    if (message.text.trim() !== '') {
      const words = wordsOf(message.text + legendOf(buttons), isExact(message))
      first = await put(room, 'm.room.message', { ...words, ...relation }, key)
      await showButtons(room, message, first, buttons, key)
    }
    for (const [i, file] of (message.attachments ?? []).entries()) {
      const sent = await sendFile(room, file, `${key}-f${i}`, relation)
      // What is changed later is the text.
      first ??= sent
    }
    return first
  }

  const edit = async ({ jid, id }: Delivered, message: Outgoing) => {
    const room = await rooms.get(roomIn(jid))
    const buttons = buttonsOf(message.card, room.isEncrypted)
    const content = wordsOf(message.text + legendOf(buttons), isExact(message))
    const fallback = `* ${message.text.slice(0, longestFallback)}`.toWellFormed()
    const replacement = {
      msgtype: 'm.text',
      body: fallback,
      'm.mentions': {},
      'm.new_content': content,
      'm.relates_to': { rel_type: 'm.replace', event_id: id },
    }
    await put(room, 'm.room.message', replacement, `edit${message.id}-${message.createdAt}`)
    if (buttons.length === 0) await hideButtons(room, id)
  }

  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof MatrixRefusal)) throw error
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

/** What somebody is to decide about is shown to the letter. */
const isExact = ({ kind, card }: Outgoing) => kind === 'approval' || card?.kind === 'approval'

/** That nobody is mentioned is said: otherwise apps would look for names and for @room in the text. */
function wordsOf(given: string, exact: boolean): object {
  const body = given.replaceAll('\0', '\ufffd').toWellFormed()
  const plain = { msgtype: 'm.text', body, 'm.mentions': {} }
  const html = exact ? undefined : htmlOf(body)
  const formatted = { ...plain, format: 'org.matrix.custom.html', formatted_body: html }
  return html === undefined || bytesOf(formatted) > mostBytes ? plain : formatted
}

function relationOf({ thread, replyTo }: Outgoing, { number }: Part): object {
  const answered = number === 1 ? replyTo : undefined
  if (thread !== undefined)
    return {
      'm.relates_to': {
        rel_type: 'm.thread',
        event_id: thread,
        is_falling_back: answered === undefined,
        'm.in_reply_to': { event_id: answered ?? thread },
      },
    }
  return answered === undefined ? {} : { 'm.relates_to': { 'm.in_reply_to': { event_id: answered } } }
}

const annotation = (to: string, key: string) => ({
  'm.relates_to': { rel_type: 'm.annotation', event_id: to, key },
})

const msgtypeOf = (type: string): string =>
  ['image', 'audio', 'video'].find(one => type.startsWith(`${one}/`))?.replace(/^/, 'm.') ?? 'm.file'
