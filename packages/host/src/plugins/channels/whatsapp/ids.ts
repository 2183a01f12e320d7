import type { BinaryNode } from './library.ts'

/**
 * WhatsApp has two ids for a person: the phone number, and a number of its own that hides the phone number in groups (LID).
 * Here a person is the phone number wherever it is known, because that is what operators know. A message is named by its
 * id and its author as WhatsApp sent them, which stay the same when it is sent again.
 */
const prefix = 'whatsapp:'
const phoneServer = '@s.whatsapp.net'

export const isOurs = (jid: string): boolean =>
  /^whatsapp:(?:\d{5,20}|\d{5,20}@lid|[\d-]{5,40}@g\.us)$/.test(jid)

/** Without the number of the device. */
export const withoutDevice = (address: string): string => address.replace(/[:_]\d+(?=@)/, '')
export const isGroup = (address: string): boolean => address.endsWith('@g.us')
export const isLid = (address: string | null | undefined): address is string =>
  address?.endsWith('@lid') === true
export const isPhone = (address: string | null | undefined): address is string =>
  address?.endsWith(phoneServer) === true

/** `4917012345678`, or `1234@lid` for somebody whose phone number WhatsApp does not tell. */
export const personOf = (address: string): string => withoutDevice(address).replace(phoneServer, '')
export const jidOf = (address: string): string => prefix + personOf(address)
export const addressOf = (jid: string): string => {
  const chat = jid.slice(prefix.length)
  return chat.includes('@') ? chat : chat + phoneServer
}

/** Of somebody else's message. One of ours is named by its id alone. */
export const referenceOf = (id: string, author: string): string => `${id}/${withoutDevice(author)}`
export function referred(reference: string): { id: string; author: string | undefined } {
  const [id = '', author] = reference.split('/')
  return { id, author }
}

/** The account that is linked, by both of its ids. */
export interface Ourselves {
  phone: string
  lid: string | undefined
}
export const isOneOfUs = (address: string | null | undefined, { phone, lid }: Ourselves): boolean => {
  if (!address) return false
  const plain = withoutDevice(address)
  return plain === phone || (lid !== undefined && plain === lid)
}

/** Who sent a stanza, by the id it names and by the other one, where WhatsApp tells both. */
export function senderOf({ attrs }: BinaryNode): { author: string; other: string | undefined } {
  const author = attrs.participant ?? attrs.from ?? ''
  const other = isLid(author)
    ? (attrs.participant_pn ?? attrs.sender_pn)
    : (attrs.participant_lid ?? attrs.sender_lid)
  return { author: withoutDevice(author), other: other && withoutDevice(other) }
}
