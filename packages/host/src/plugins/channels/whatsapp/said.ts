import type { proto } from './library.ts'

/** What the content of a message means to us. */

export interface Media {
  kind: 'image' | 'video' | 'audio' | 'document' | 'sticker'
  name: string
  key: Uint8Array
  /** below the host of WhatsApp's files; whoever sent the message chose it */
  path: string
  sha256: Uint8Array | undefined
}

type WithContext = { contextInfo?: proto.IContextInfo | null } | null | undefined

/** Mentions and the message that is answered. */
export function contextOf(content: proto.IMessage): proto.IContextInfo | undefined {
  const parts: WithContext[] = [
    content.extendedTextMessage,
    content.imageMessage,
    content.videoMessage,
    content.audioMessage,
    content.documentMessage,
    content.stickerMessage,
    content.locationMessage,
    content.contactMessage,
  ]
  return parts.find(part => part?.contextInfo)?.contextInfo ?? undefined
}

/** Undefined: nothing was said in words. */
export function wordsOf(content: proto.IMessage): string | undefined {
  return (
    content.conversation ||
    content.extendedTextMessage?.text ||
    content.imageMessage?.caption ||
    content.videoMessage?.caption ||
    content.documentMessage?.caption ||
    besidesWords(content) ||
    undefined
  )
}

function besidesWords(content: proto.IMessage): string | undefined {
  const { locationMessage: place, contactMessage, contactsArrayMessage } = content
  const poll = content.pollCreationMessage ?? content.pollCreationMessageV2 ?? content.pollCreationMessageV3
  if (place) {
    const at = `${place.degreesLatitude}, ${place.degreesLongitude}`
    return place.name ? `[place: ${place.name}, ${at}]` : `[location: ${at}]`
  }
  if (poll) return `[poll: ${poll.name} (${(poll.options ?? []).map(one => one.optionName).join(', ')})]`
  const contacts = contactMessage ? [contactMessage] : (contactsArrayMessage?.contacts ?? [])
  if (contacts.length === 0) return undefined
  return contacts.map(({ displayName, vcard }) => `[contact: ${displayName} ${numbersIn(vcard)}]`).join('\n')
}

const numbersIn = (card: string | null | undefined) =>
  [...(card ?? '').matchAll(/^TEL[^:\n]*:(.+)$/gm)].map(([, number]) => number?.trim()).join(' ')

/** The file of a message: it has one at most. */
export function mediaIn(content: proto.IMessage, id: string): Media | undefined {
  const { documentMessage: document, audioMessage: audio } = content
  const kinds = [
    ['image', content.imageMessage, 'photo'],
    ['video', content.videoMessage ?? content.ptvMessage, 'video'],
    ['audio', audio, audio?.ptt ? 'voice' : 'audio'],
    ['document', document, 'file'],
    ['sticker', content.stickerMessage, 'sticker'],
  ] as const
  for (const [kind, media, word] of kinds) {
    const path = pathIn(media)
    if (!media?.mediaKey || path === undefined) continue
    const name = (kind === 'document' && document?.fileName) || `${word}-${id}.${endingOf(media.mimetype)}`
    return { kind, name, key: media.mediaKey, path, sha256: media.fileSha256 ?? undefined }
  }
  return undefined
}

/** Only a path: a message must not be able to have the host ask any other server. */
function pathIn(
  media: { directPath?: string | null; url?: string | null } | null | undefined,
): string | undefined {
  const path = media?.directPath || (media?.url && URL.parse(media.url)?.href.replace(/^\w+:\/\/[^/]*/, ''))
  return path && /^\/[!-~]*$/.test(path) ? path : undefined
}

const endings: Readonly<Record<string, string>> = { jpeg: 'jpg', mpeg: 'mp3', plain: 'txt', quicktime: 'mov' }

function endingOf(type: string | null | undefined): string {
  const [, ending = 'bin'] = /^\w+\/([\w-]+)/.exec(type ?? '') ?? []
  return endings[ending] ?? ending
}
