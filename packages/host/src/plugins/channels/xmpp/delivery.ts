import { randomUUID } from 'node:crypto'
import {
  type ChannelHost,
  type Delivered,
  DeliveryError,
  type Outgoing,
  type Part,
} from '../../../chat/channels/types.ts'
import { type MarkdownStyle, plain, renderMarkdown } from '../markdown.ts'
import type { Files } from './files.ts'
import type { IdSource, Ids } from './ids.ts'
import type { Child, Xml } from './library.ts'
import { type Session, StanzaRefusal } from './session.ts'
import { addressIn, archiveIdOf, externalIdOf, ns } from './stanzas.ts'

/** What speaking needs of a connection. */
interface Line {
  session: Session
  source: IdSource
  files: Files
}

export interface Delivery {
  send(message: Outgoing, part: Part): Promise<string | undefined>
  edit(delivered: Delivered, message: Outgoing): Promise<void>
  typing(jid: string, isOn: boolean): Promise<void>
}

/** how long to wait where the server asks for it: it never says how long */
const limitMs = 2000
/** refusals that nobody takes back */
const final: ReadonlySet<string> = new Set([
  ...['bad-request', 'forbidden', 'gone', 'item-not-found', 'jid-malformed', 'not-acceptable'],
  ...['not-allowed', 'not-authorized', 'policy-violation', 'registration-required', 'service-unavailable'],
])

/** https://xmpp.org/extensions/xep-0393.html: a span ends on the line it begins on */
const span = (mark: string) => (inner: string) => (inner.includes('\n') ? inner : `${mark}${inner}${mark}`)
const styling: MarkdownStyle = {
  ...plain,
  bold: span('*'),
  italic: span('_'),
  strike: span('~'),
  code: raw => (raw.includes('`') ? raw : span('`')(raw)),
  block: raw => `\`\`\`\n${raw}\n\`\`\``,
}

const words = ({ text, kind, card }: Pick<Outgoing, 'text' | 'kind' | 'card'>, xml: Xml) => {
  // What somebody is to decide about is shown to the letter.
  const isExact = kind === 'approval' || card?.kind === 'approval'
  const shown = isExact ? text : renderMarkdown(text, styling) || text
  return [
    xml('body', {}, shown),
    xml('active', { xmlns: ns.chatStates }),
    isExact && xml('unstyled', { xmlns: ns.styling }),
  ]
}

export interface DeliveryOptions {
  /** undefined: there is no connection */
  line(): Line | undefined
  memory(): Pick<ChannelHost, 'recall' | 'remember'> | undefined
  ids: Ids
  readFile(id: string): Promise<Buffer | undefined>
  /** what was said before this may have been delivered by an earlier process */
  startedAt: number
  limited(ms: number): void
}

/** Says something once, under ids of ours. */
function createPosting(options: DeliveryOptions) {
  const { ids } = options
  /** chats in which an earlier process has said nothing that it did not note: one message of it was looked for in vain */
  const caughtUp = new Set<string>()

  const connected = () => {
    const line = options.line()
    if (!line) throw new Error('There is no connection to the XMPP server.')
    return line
  }

  /** The same for each attempt, and another than anybody else's: numbers of messages begin at 1 everywhere. */
  const idFor = (key: string): string => {
    const memory = options.memory()
    if (memory && memory.recall('salt') === undefined) memory.remember('salt', randomUUID().slice(0, 13))
    return `${memory?.recall('salt')}-${key}`
  }

  /** Resolves with the id that others name it by. */
  const post = async (to: string, id: string, ...children: readonly Child[]): Promise<string> => {
    const { session, source } = connected()
    const { xml } = session
    const room = source.room(to)
    if (room && !room.isJoined) throw new Error(`The assistant is not in the room ${to}.`)
    const message = xml(
      'message',
      { to, id, type: room ? 'groupchat' : 'chat' },
      children,
      xml('origin-id', { xmlns: ns.ids, id }),
      // Reactions and the like have no words, and would not be kept for those who are away.
      xml('store', { xmlns: ns.hints }),
    )
    const shown = await session.deliver(message, room !== undefined)
    const external = externalIdOf(shown ?? message, shown && archiveIdOf(shown, to), room !== undefined) ?? id
    ids.note(to, source.me, message, external)
    return external
  }

  /** Posts it unless an earlier attempt has done so: then the archive knows it. */
  const postOnce = async (
    message: Outgoing,
    id: string,
    content: () => readonly Child[] | Promise<readonly Child[]>,
  ): Promise<string> => {
    const to = addressIn(message.jid)
    const { source } = connected()
    // The archive is slow to ask: not for each of the many messages that have waited. They are said in their order, so
    // behind one that was not said none was.
    const isRepeat = message.error !== null || (message.createdAt < options.startedAt && !caughtUp.has(to))
    const before = isRepeat ? await ids.external(source, to, source.me, id) : undefined
    if (isRepeat && before === undefined) caughtUp.add(to)
    return before ?? post(to, id, ...(await content()))
  }

  return { connected, idFor, post, postOnce }
}

export function createDelivery(options: DeliveryOptions): Delivery {
  const { ids } = options
  const { connected, idFor, post, postOnce } = createPosting(options)

  const sendFile = (message: Outgoing, id: string, index: number): Promise<string> =>
    postOnce(message, id, async () => {
      const { session, files } = connected()
      const file = message.attachments?.[index]
      const content = file && (await options.readFile(file.id))
      const sent =
        content === undefined
          ? { refused: 'it is no longer kept' }
          : await files.upload(file?.name ?? 'file', file?.type ?? '', content)
      if ('refused' in sent)
        return words(
          { text: `[${file?.name} cannot be sent: ${sent.refused}]`, kind: 'approval' },
          session.xml,
        )
      const oob = session.xml('x', { xmlns: ns.oob }, session.xml('url', {}, sent.url))
      // Apps show the file only where the body is its address and nothing else.
      return [session.xml('body', {}, sent.url), oob]
    })

  const send = async (message: Outgoing, part: Part): Promise<string | undefined> => {
    const { session } = connected()
    const { xml } = session
    const to = addressIn(message.jid)
    const id = idFor(part.key)
    if (message.kind === 'reaction') {
      if (!message.messageId) throw new DeliveryError('There is no message to react to.', { isFinal: true })
      const reaction = xml('reaction', {}, message.text.trim())
      await post(to, id, xml('reactions', { xmlns: ns.reactions, id: message.messageId }, reaction))
      return undefined
    }
    const isFirst = part.number === 1
    let sent: string | undefined
    if (message.text.trim() !== '')
      sent = await postOnce(message, id, () => [
        ...words(message, xml),
        message.thread !== undefined && xml('thread', {}, message.thread),
        isFirst && message.replyTo !== undefined && xml('reply', { xmlns: ns.reply, id: message.replyTo }),
      ])
    for (const [index] of (message.attachments ?? []).entries()) {
      const file = await sendFile(message, `${id}-${index + 1}`, index)
      // What is changed later is the text.
      sent ??= file
    }
    return sent
  }

  const edit = async ({ jid, id }: Delivered, message: Outgoing) => {
    const { session, source } = connected()
    const to = addressIn(jid)
    const own = await ids.own(source, to, id)
    // Between two people both ids are the same.
    const replaced = own ?? (source.room(to) ? undefined : id)
    if (replaced === undefined)
      throw new DeliveryError('The message is too old to be changed.', { isFinal: true })
    const replace = session.xml('replace', { xmlns: ns.correct, id: replaced })
    await post(to, idFor(`edit${message.id}`), ...words(message, session.xml), replace)
  }

  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StanzaRefusal)) throw error
      if (!error.isTemporary) throw new DeliveryError(error.message, { isFinal: final.has(error.condition) })
      options.limited(limitMs)
      throw new DeliveryError(error.message, { retryAfterMs: limitMs })
    }
  }

  return {
    send: (message, part) => told(() => send(message, part)),
    edit: (delivered, message) => told(() => edit(delivered, message)),
    async typing(jid, isOn) {
      const line = options.line()
      if (!line) return
      const { xml, send: sendNow } = line.session
      const to = addressIn(jid)
      const type = line.source.room(to) ? 'groupchat' : 'chat'
      const state = xml(isOn ? 'composing' : 'paused', { xmlns: ns.chatStates })
      await sendNow(xml('message', { to, type }, state, xml('no-store', { xmlns: ns.hints })))
    },
  }
}
