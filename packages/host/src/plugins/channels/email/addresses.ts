import { domainToASCII } from 'node:url'
import type { Address, Mailbox } from 'postal-mime'

/**
 * Chats are people: `email:ann@example.org` is what Ann and the assistant write to each other, and
 * `email:ann@example.org,bob@example.org` what is written among the three. Whoever adds somebody to a mail
 * begins another chat, so that nobody reads along in one that was approved for others.
 */
const prefix = 'email:'
/** the protocol's limit for the address of a chat */
const longestJid = 256
/** Quoted local parts, which may hold commas, spaces and more, are in no use; what is not here cannot be written to. */
const addressForm = /^[a-z\d.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z\d-]+(?:\.[a-z\d-]+)*$/

export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1)

/** As it is compared everywhere: in lower case, the domain in ASCII. Undefined: it is none that can be written to. */
export function normalised(address: string): string | undefined {
  const at = address.lastIndexOf('@')
  const whole = `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1).trim())}`.trim().toLowerCase()
  return at > 0 && addressForm.test(whole) ? whole : undefined
}

/** Whether it is our address, also with something behind a plus. */
export function isAddressOf(own: string, address: string): boolean {
  const withoutTag = (one: string) => one.replace(/\+[^@]*@/, '@')
  return address === own || withoutTag(address) === own
}

/** All the people that headers name; groups are opened. */
export const mailboxes = (addresses: readonly Address[] | undefined): Mailbox[] =>
  (addresses ?? []).flatMap(one => ('group' in one && one.group ? one.group : 'address' in one ? [one] : []))

/** Undefined: there are too many people for one chat. */
export function jidOf(people: Iterable<string>): string | undefined {
  const jid = prefix + [...new Set(people)].sort().join(',')
  return jid.length <= longestJid ? jid : undefined
}

export const peopleIn = (jid: string): string[] => jid.slice(prefix.length).split(',')

/** Only as `jidOf` writes it: two addresses of one chat would be two chats. */
export const isOurs = (jid: string): boolean =>
  jid.startsWith(prefix) && peopleIn(jid).every(one => addressForm.test(one)) && jidOf(peopleIn(jid)) === jid
