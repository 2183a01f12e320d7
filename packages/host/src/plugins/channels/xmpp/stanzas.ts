import type { Element } from './library.ts'

/** Namespaces of the extensions that are used, by their numbers at https://xmpp.org/extensions/ */
export const ns = {
  stanzas: 'urn:ietf:params:xml:ns:xmpp-stanzas',
  roster: 'jabber:iq:roster',
  form: 'jabber:x:data', // 0004
  info: 'http://jabber.org/protocol/disco#info', // 0030
  items: 'http://jabber.org/protocol/disco#items',
  muc: 'http://jabber.org/protocol/muc', // 0045
  mucUser: 'http://jabber.org/protocol/muc#user',
  page: 'http://jabber.org/protocol/rsm', // 0059
  oob: 'jabber:x:oob', // 0066
  chatStates: 'http://jabber.org/protocol/chatstates', // 0085
  ping: 'urn:xmpp:ping', // 0199
  delay: 'urn:xmpp:delay', // 0203
  invitation: 'jabber:x:conference', // 0249
  carbons: 'urn:xmpp:carbons:2', // 0280
  forward: 'urn:xmpp:forward:0', // 0297
  correct: 'urn:xmpp:message-correct:0', // 0308
  mam: 'urn:xmpp:mam:2', // 0313
  hints: 'urn:xmpp:hints', // 0334
  ids: 'urn:xmpp:sid:0', // 0359
  upload: 'urn:xmpp:http:upload:0', // 0363
  reference: 'urn:xmpp:reference:0', // 0372
  encryption: 'urn:xmpp:eme:0', // 0380
  omemo: 'eu.siacs.conversations.axolotl', // 0384
  styling: 'urn:xmpp:styling:0', // 0393
  fasten: 'urn:xmpp:fasten:0', // 0422
  retract: 'urn:xmpp:message-retract:1', // 0424
  retractBefore: 'urn:xmpp:message-retract:0',
  fallback: 'urn:xmpp:fallback:0', // 0428
  reactions: 'urn:xmpp:reactions:0', // 0444
  reply: 'urn:xmpp:reply:0', // 0461
} as const

export const bareOf = (address: string): string => address.split('/', 1)[0] ?? ''
export const resourceOf = (address: string): string => address.slice(bareOf(address).length + 1)
export const localOf = (address: string): string => address.split('@', 1)[0] ?? ''

export const jidOf = (address: string): string => `xmpp:${address}`
export const addressIn = (jid: string): string => jid.slice('xmpp:'.length)
export const isOurs = (jid: string): boolean => /^xmpp:[^\s@/]+@[^\s@/]+$/.test(jid)

/** Neither the database nor the next stanza is to hold what somebody made long on purpose. */
const longestId = 256
const shortId = (id: string | undefined): string | undefined =>
  id !== undefined && id !== '' && id.length <= longestId ? id : undefined

/** The id that an archive gave it. Anybody can write such an element; the archive's owner takes out those in its own name. */
export const archiveIdOf = (message: Element, by: string): string | undefined =>
  shortId(message.getChildren('stanza-id', ns.ids).find(one => one.attrs.by === by)?.attrs.id)

/** The id that its sender gave it, by which corrections name it. */
export const sendersIdOf = (message: Element): string | undefined => shortId(message.attrs.id)

/**
 * The id that others name a message by: in rooms the one that the room gave it, as anybody there could choose the same as
 * somebody else; between two people the sender's own.
 */
export const externalIdOf = (
  message: Element,
  archived: string | undefined,
  isRoom: boolean,
): string | undefined => {
  const own = shortId(message.getChild('origin-id', ns.ids)?.attrs.id) ?? sendersIdOf(message)
  return isRoom ? (archived ?? own) : (own ?? archived)
}

export const timeOf = (element: Element | undefined): number | undefined => {
  const at = Date.parse(element?.getChild('delay', ns.delay)?.attrs.stamp ?? '')
  return Number.isNaN(at) ? undefined : at
}

/** What a message is about; undefined: nothing that anybody said, such as that somebody types. */
export type Content =
  | {
      kind: 'words'
      text: string
      files: readonly string[]
      thread: string | undefined
      answers: { id: string; by: string; text: string | undefined } | undefined
      mentions: readonly string[]
    }
  | { kind: 'correction'; of: string; text: string }
  | { kind: 'retraction'; of: string }
  | { kind: 'reactions'; to: string; emojis: readonly string[] }
  | { kind: 'invitation'; room: string; reason: string }

const mostEmojis = 10
const mostFiles = 10

export function contentOf(message: Element): Content | undefined {
  const retracted =
    message.getChild('retract', ns.retract)?.attrs.id ??
    message.getChildren('apply-to', ns.fasten).find(one => one.getChild('retract', ns.retractBefore))?.attrs
      .id
  if (retracted !== undefined) return { kind: 'retraction', of: retracted }
  const reactions = message.getChild('reactions', ns.reactions)
  if (reactions) {
    const emojis = reactions.getChildren('reaction', ns.reactions).map(one => one.text().trim())
    return {
      kind: 'reactions',
      to: reactions.attrs.id ?? '',
      emojis: emojis.filter(Boolean).slice(0, mostEmojis),
    }
  }
  const invitation = message.getChild('x', ns.invitation)
  if (invitation?.attrs.jid !== undefined)
    return {
      kind: 'invitation',
      room: bareOf(invitation.attrs.jid).toLowerCase(),
      reason: invitation.attrs.reason ?? '',
    }
  const corrected = message.getChild('replace', ns.correct)?.attrs.id
  const words = wordsOf(message)
  if (corrected !== undefined)
    return words === undefined ? undefined : { kind: 'correction', of: corrected, text: words.text }
  if (words === undefined) return undefined
  return {
    kind: 'words',
    ...words,
    thread: shortId(message.getChildText('thread')?.trim()),
    mentions: message
      .getChildren('reference', ns.reference)
      .flatMap(({ attrs }) => (attrs.type === 'mention' && attrs.uri ? [attrs.uri] : [])),
  }
}

/** The body without the quote that apps put before it for others that know no answers. */
function wordsOf(message: Element) {
  const body = message.getChildText('body') ?? undefined
  if (message.getChild('encryption', ns.encryption) || message.getChild('encrypted', ns.omemo))
    return {
      text: '[This message is encrypted, and Hatchway cannot read it. Turn encryption (OMEMO) off for this chat.]',
      files: [],
      answers: undefined,
    }
  if (body === undefined || body === '') return undefined
  const reply = message.getChild('reply', ns.reply)
  const range = message
    .getChildren('fallback', ns.fallback)
    .find(({ attrs }) => attrs.for === ns.reply)
    ?.getChild('body')
  const letters = [...body]
  const start = Number(range?.attrs.start ?? 0)
  const end = range ? Number(range.attrs.end ?? letters.length) : 0
  const isRange = reply !== undefined && end > start && start >= 0 && end <= letters.length
  const text = isRange ? letters.toSpliced(start, end - start).join('') : body
  const quoted = isRange ? letters.slice(start, end).join('').replace(/^> ?/gm, '').trim() : undefined
  const files = message
    .getChildren('x', ns.oob)
    .flatMap(one => one.getChildText('url')?.trim() || [])
    .slice(0, mostFiles)
  const answered = shortId(reply?.attrs.id)
  return {
    // Where the body is nothing but the address of the file, the file says it all.
    text: files.includes(text.trim()) ? '' : text,
    files,
    answers: answered === undefined ? undefined : { id: answered, by: reply?.attrs.to ?? '', text: quoted },
  }
}

/** what XML has no place for: https://www.w3.org/TR/xml/#charsets */
const notInXml = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu
export const fitForXml = (text: string): string => text.toWellFormed().replace(notInXml, '\ufffd')
