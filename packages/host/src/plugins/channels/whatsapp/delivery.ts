import { createHash } from 'node:crypto'
import { abortable } from '../../../base/pause.ts'
import { type Delivered, DeliveryError, type Outgoing, type Part } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { renderMarkdown } from '../markdown.ts'
import { addressOf, isGroup, type Ourselves, referred } from './ids.ts'
import type { AnyMessageContent, BinaryNode, proto, Socket } from './library.ts'
import { signs, verbatim } from './markup.ts'
import type { Recent } from './recent.ts'

export interface Delivery {
  send(message: Outgoing, part: Part): Promise<string | undefined>
  edit(delivered: Delivered, message: Outgoing): Promise<void>
}

export interface DeliveryOptions {
  /** the connection there is now; throws while there is none */
  connection(): { socket: Socket; ended: AbortSignal; ourselves: Ourselves }
  /** makes the ids of our messages, together with what is being sent: nobody else can foresee them */
  secret(): string
  readFile(id: string): Promise<Buffer | undefined>
  recent: Recent
  limited(ms: number): void
  now(): number
}

export const longestMessage = 60_000
/** what WhatsApp takes */
const longestText = 65_536
/** WhatsApp's apps ignore changes of what is older than a quarter of an hour */
const changeableMs = 14 * 60_000
const answerMs = 60_000
/** where WhatsApp asks to wait and does not say how long */
const waitMs = 60_000
const pictures: ReadonlySet<string> = new Set(['image/jpeg', 'image/png'])
const mostRemembered = 1000

export function createDelivery(options: DeliveryOptions): Delivery {
  const { recent, now } = options
  /** by the key of a part: what of it has arrived, so that the next attempt goes on from there */
  const unfinished = new Map<string, { id: string | undefined; files: number }>()
  const sentAt = new Map<string, number>()

  /** Resolves when WhatsApp has it, not when it is written. The same key has the same id, which its apps show once. */
  const write = async (address: string, content: AnyMessageContent, key: string): Promise<string> => {
    const { socket, ended, ourselves } = options.connection()
    const id = idFor(options.secret(), ourselves, key)
    const answer = Promise.withResolvers<BinaryNode>()
    const event = `CB:ack,id:${id}`
    socket.ws.once(event, answer.resolve)
    let timer: NodeJS.Timeout | undefined
    try {
      await abortable(socket.sendMessage(address, content, { messageId: id }), ended)
      timer = setTimeout(() => answer.reject(new Error('WhatsApp does not answer.')), answerMs)
      const { attrs } = await abortable(answer.promise, ended)
      if (attrs.error !== undefined) throw refusalOf(Number(attrs.error), Number(attrs.backoff))
      return id
    } finally {
      clearTimeout(timer)
      socket.ws.off(event, answer.resolve)
    }
  }

  const remember = (id: string, text: string) => {
    if (sentAt.size >= mostRemembered) sentAt.clear()
    sentAt.set(id, now())
    recent.keep(id, text)
  }

  const writeText = async (address: string, message: Outgoing, key: string, quote?: proto.IContextInfo) => {
    const content = { text: rendered(message), linkPreview: null, ...(quote && { contextInfo: quote }) }
    const id = await write(address, content, key)
    remember(id, message.text)
    return id
  }

  const sendFile = async (address: string, { id, name, type }: Attachment, key: string) => {
    const content = await options.readFile(id)
    if (!content) return write(address, { text: `[${name} is no longer kept.]`, linkPreview: null }, key)
    // Without the small picture, which the library would have a program of its own make from whatever the file is.
    if (pictures.has(type)) return write(address, { image: content, mimetype: type, jpegThumbnail: '' }, key)
    return write(address, { document: content, mimetype: type, fileName: name }, key)
  }

  const quoteFor = ({ replyTo }: Outgoing): proto.IContextInfo | undefined => {
    const conversation = replyTo === undefined ? undefined : recent.of(replyTo)
    if (conversation === undefined || replyTo === undefined) return undefined
    const { id, author } = referred(replyTo)
    const { phone } = options.connection().ourselves
    return { stanzaId: id, participant: author ?? phone, quotedMessage: { conversation } }
  }

  const sendAll = async (message: Outgoing, { key, number }: Part) => {
    const address = addressOf(message.jid)
    const progress = unfinished.get(key) ?? { id: undefined, files: 0 }
    if (!unfinished.has(key) && unfinished.size >= mostRemembered) unfinished.clear()
    unfinished.set(key, progress)
    if (message.text.trim() !== '')
      progress.id ??= await writeText(address, message, key, number === 1 ? quoteFor(message) : undefined)
    for (const file of (message.attachments ?? []).slice(progress.files)) {
      const id = await sendFile(address, file, `${key}-${progress.files}`)
      // What is changed later is the text.
      progress.id ??= id
      progress.files++
    }
    unfinished.delete(key)
    return progress.id
  }

  const react = async ({ jid, messageId, text }: Outgoing, { key }: Part) => {
    const { id, author } = referred(messageId ?? '')
    if (id === '') throw new DeliveryError('There is no message to react to.', { isFinal: true })
    const address = addressOf(jid)
    await write(address, { react: { text: text.trim(), key: keyOf(address, id, author) } }, key)
    return undefined
  }

  const edit = async ({ jid, id }: Delivered, message: Outgoing) => {
    const address = addressOf(jid)
    const key = `hw${message.id}-edit`
    const isYoung = now() - (sentAt.get(id) ?? Number.NEGATIVE_INFINITY) < changeableMs
    // What would not be seen to change is said once more.
    if (!isYoung) await writeText(address, message, key)
    else await write(address, { text: rendered(message), edit: keyOf(address, id, undefined) }, key)
  }

  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      const failure = failureOf(error)
      if (failure.retryAfterMs !== undefined) options.limited(failure.retryAfterMs)
      throw failure
    }
  }

  return {
    send: (message, part) =>
      told(() => (message.kind === 'reaction' ? react(message, part) : sendAll(message, part))),
    edit: (delivered, message) => told(() => edit(delivered, message)),
  }
}

/** What somebody is to decide about is shown to the letter. */
function rendered({ text, kind, card }: Outgoing): string {
  if (kind === 'approval' || card?.kind === 'approval') return verbatim(text)
  const formatted = renderMarkdown(text, signs)
  return formatted === '' || formatted.length > longestText ? text : formatted
}

const keyOf = (address: string, id: string, author: string | undefined) => ({
  remoteJid: address,
  id,
  fromMe: author === undefined,
  ...(author !== undefined && isGroup(address) && { participant: author }),
})

/** As the ids of WhatsApp's own apps look. */
const idFor = (secret: string, { phone }: Ourselves, key: string): string =>
  `3EB0${createHash('sha256').update(`${secret} ${phone} ${key}`).digest('hex').slice(0, 18).toUpperCase()}`

const meanings: Readonly<Record<number, string>> = {
  401: 'This account may not write there.',
  403: 'This account may not write there. Let it into the group again.',
  404: 'There is no such chat.',
  406: 'WhatsApp finds the message invalid.',
  463: 'WhatsApp does not let this account begin chats at present. Let the other person write first.',
}

function refusalOf(code: number, backoffSeconds = Number.NaN): DeliveryError {
  const message = `WhatsApp refused it (${code}). ${meanings[code] ?? ''}`.trim()
  if (code !== 429) return new DeliveryError(message, { isFinal: meanings[code] !== undefined })
  return new DeliveryError(message, { retryAfterMs: backoffSeconds > 0 ? backoffSeconds * 1000 : waitMs })
}

/** Of what the library throws: it has the number in one of two places. */
function failureOf(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error
  const message = error instanceof Error ? error.message : String(error)
  const data = error instanceof Error && 'data' in error ? error.data : undefined
  const code = typeof data === 'number' ? data : undefined
  if (code !== undefined && (code === 429 || meanings[code] !== undefined)) return refusalOf(code)
  return new DeliveryError(`WhatsApp did not take it: ${message}`)
}
