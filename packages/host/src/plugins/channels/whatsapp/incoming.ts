import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { pause } from '../../../base/pause.ts'
import type { ChannelHost, Incoming } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import type { Groups } from './groups.ts'
import {
  isGroup,
  isLid,
  isOneOfUs,
  isPhone,
  jidOf,
  type Ourselves,
  personOf,
  referenceOf,
  senderOf,
  withoutDevice,
} from './ids.ts'
import type { Baileys, proto, Socket } from './library.ts'
import type { Said } from './link.ts'
import type { Recent } from './recent.ts'
import { contextOf, type Media, mediaIn, wordsOf } from './said.ts'

export interface TakerOptions {
  host: ChannelHost
  library: Baileys
  groups: Groups
  log: Logger
  recent: Recent
}

const downloadMs = 120_000
const downloadAttempts = 3
const downloadPauseMs = 1000

/** Where and by whom something was said; `authors` are the ids by which WhatsApp may name them in other messages. */
interface Origin {
  by: Pick<Incoming, 'jid' | 'sender' | 'senderName'>
  id: string
  authors: readonly string[]
  inGroup: boolean
  ourselves: Ourselves
}

/** Hands what was said to the host. Resolves once it is stored or refused. */
export function createTaker({ host, library, groups, log, recent }: TakerOptions) {
  const moved = new Set<string>()

  /** A chat that was known by the id that hides the number goes on under the number. */
  const follow = async (lid: string, phone: string) => {
    if (moved.has(lid)) return
    await host.moved(jidOf(lid), jidOf(phone))
    moved.add(lid)
  }

  /** Undefined: it is nothing that somebody said to us. */
  const originOf = async ({ node }: Said, socket: Socket): Promise<Origin | undefined> => {
    const { id = '', from = '', recipient, category, notify } = node.attrs
    const ourselves = ourselvesOf(socket)
    const { author, other } = senderOf(node)
    const chat = withoutDevice(recipient ?? from)
    if (!ourselves || category === 'peer') return undefined
    const isSelf = isOneOfUs(author, ourselves)
    // From our own account only what its owner writes to themselves.
    if (isSelf && !isOneOfUs(chat, ourselves)) return undefined
    const phone = isSelf
      ? ourselves.phone
      : ([author, other].find(isPhone) ?? (await socket.signalRepository.lidMapping.getPNForLID(author)))
    const person = withoutDevice(phone ?? author)
    const lid = [author, other].find(isLid)
    if (!isGroup(chat) && phone && lid) await follow(lid, person)
    const address = isGroup(chat) ? chat : person
    const sender = personOf(person)
    const senderName = notify || sender
    const name = isGroup(chat) ? await groups.nameOf(chat) : senderName
    host.knows({ jid: jidOf(address), name, isGroup: isGroup(chat) })
    return {
      by: { jid: jidOf(address), sender, senderName },
      id,
      authors: [author, ...(other ? [other] : [])],
      inGroup: isGroup(chat),
      ourselves,
    }
  }

  const contentOf = async function* (media: Media, socket: Socket) {
    await socket.refreshMediaConn(false)
    const hash = createHash('sha256')
    const stream = await library.downloadContentFromMessage(
      { mediaKey: media.key, directPath: media.path },
      media.kind,
      { host: socket.getMediaHost(), options: { signal: AbortSignal.timeout(downloadMs) } },
    )
    for await (const chunk of stream) {
      hash.update(chunk)
      yield chunk
    }
    if (media.sha256?.length && !hash.digest().equals(media.sha256)) throw new Error('it has arrived damaged')
  }

  /** The file, or a line that says why it is missing: one that cannot be had must not hold up all that follows. */
  const takeFile = async (origin: Origin, media: Media, socket: Socket): Promise<Attachment | string> => {
    let reason = ''
    for (let attempt = 1; attempt <= downloadAttempts; attempt++) {
      try {
        const taken = await host.takeFile(origin.by, { name: media.name, content: contentOf(media, socket) })
        return taken.ok ? taken.attachment : `[${media.name} was not taken: ${taken.error.message}]`
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error)
        log.debug({ reason, attempt }, 'a file of a message was not fetched')
        if (attempt < downloadAttempts) await pause(downloadPauseMs)
      }
    }
    return `[${media.name} was not taken: ${reason}]`
  }

  const hear = async (origin: Origin, content: proto.IMessage, at: number, socket: Socket) => {
    const { by, id, authors, ourselves } = origin
    const words = wordsOf(content)
    const media = mediaIn(content, id)
    if (words === undefined && !media) return
    const taken = media && (await takeFile(origin, media, socket))
    const context = contextOf(content)
    const isMention = (context?.mentionedJid ?? []).some(one => isOneOfUs(one, ourselves))
    const quotesUs = isOneOfUs(context?.participant, ourselves)
    const reference = referenceOf(id, authors[0] ?? '')
    const received = await host.receive({
      ...by,
      externalId: reference,
      text: [isMention ? withoutMention(words ?? '', ourselves) : words, typeof taken === 'string' && taken]
        .filter(Boolean)
        .join('\n'),
      ...(typeof taken === 'object' && { attachments: [taken] }),
      at,
      mentioned: isMention || quotesUs,
      quote: quoteIn(context, quotesUs, recent),
    })
    if (received.ok && words !== undefined) recent.keep(reference, words)
  }

  const change = async ({ by, authors }: Origin, id: string, text: string | null) => {
    // The group may have begun to hide numbers since it was said.
    for (const author of authors) await host.changed({ ...by, externalId: referenceOf(id, author), text })
  }

  const react = async (origin: Origin, { key, text }: proto.Message.IReactionMessage) => {
    const { by, authors, inGroup, ourselves } = origin
    if (!key?.id || !text) return
    const author = key.fromMe ? authors[0] : inGroup ? key.participant : ourselves.phone
    const to = isOneOfUs(author, ourselves) ? key.id : referenceOf(key.id, author ?? '')
    await host.reacted({ ...by, to, emoji: text })
  }

  return async (said: Said, socket: Socket): Promise<void> => {
    const content = library.normalizeMessageContent(said.content)
    const origin = content && (await originOf(said, socket))
    if (!content || !origin) return
    const { protocolMessage: protocol, reactionMessage: reaction } = content
    const { REVOKE, MESSAGE_EDIT } = library.proto.Message.ProtocolMessage.Type
    if (reaction) return react(origin, reaction)
    if (!protocol) return hear(origin, content, (Number(said.node.attrs.t) || 0) * 1000, socket)
    const id = protocol.key?.id
    if (!id) return
    // Of the others, such as the history that a phone hands over, nothing is new.
    if (protocol.type === REVOKE) await change(origin, id, null)
    const edited = library.normalizeMessageContent(protocol.editedMessage ?? undefined)
    const words = edited && wordsOf(edited)
    if (protocol.type === MESSAGE_EDIT && words !== undefined) await change(origin, id, words)
  }
}

export function ourselvesOf({ user }: Pick<Socket, 'user'>): Ourselves | undefined {
  if (!user) return undefined
  return { phone: withoutDevice(user.id), lid: user.lid && withoutDevice(user.lid) }
}

const withoutMention = (text: string, { phone, lid }: Ourselves): string =>
  [phone, lid]
    .reduce<string>((rest, one) => (one ? rest.replaceAll(`@${one.split('@')[0]}`, '') : rest), text)
    .trim()

/** What was said is taken from what we know, where we do: whoever quotes can claim that it was something else. */
function quoteIn(
  context: proto.IContextInfo | undefined,
  isOurs: boolean,
  recent: Recent,
): Incoming['quote'] {
  const { stanzaId, participant, quotedMessage } = context ?? {}
  if (!stanzaId) return undefined
  const id = isOurs || !participant ? stanzaId : referenceOf(stanzaId, participant)
  return {
    id,
    ...(participant && !isOurs && { senderName: personOf(participant) }),
    text: recent.of(id) ?? (quotedMessage ? wordsOf(quotedMessage) : undefined),
  }
}
