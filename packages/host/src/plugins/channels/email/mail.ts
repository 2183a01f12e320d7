import { createHash } from 'node:crypto'
import type { Address, Attachment, Email, Header, PostalMimeOptions, RawEmail } from 'postal-mime'
import { oneLine } from '../../../base/visible-text.ts'
import { isAddressOf, jidOf, mailboxes, normalised } from './addresses.ts'
import { checkSender } from './checks.ts'
import { textOfHtml, withoutHistory } from './words.ts'

/** The part of the library that is used. */
export interface PostalMime {
  default: {
    parse(raw: RawEmail, options?: PostalMimeOptions): Promise<Email>
    addressParser(value: string): Address[]
  }
}

const limits = { maxNestingDepth: 50, maxHeadersSize: 262_144, maxRfc822NestingDepth: 2 }
const longestText = 90_000
const longestName = 100
const longestSubject = 300
const mostIds = 50

/** A mail's headers, as far as they matter. */
export interface Letter {
  /** of the chat */
  jid: string
  isRoom: boolean
  /** the people in it, for its name */
  people: string
  sender: string
  senderName: string
  /** Message-ID; a made-up one, where the mail has none */
  id: string
  /** the mails that it follows, the first of the thread first, without itself */
  references: readonly string[]
  /** the mail that it answers */
  inReplyTo: string | undefined
  /** where it is said that we are meant, and not only to read along */
  isToUs: boolean
  subject: string
}

/** What is to be done with a mail: it is taken, it is nobody's words, or it is not what it says it is. */
export type Reading =
  | { kind: 'letter'; letter: Letter }
  | { kind: 'ignored'; reason: string }
  | { kind: 'refused'; from: string; reason: string }

/** The headers alone: what comes after them is parsed only where they are in order. */
export async function readHeaders(
  parser: PostalMime,
  source: Buffer,
  own: { address: string; authserv: string },
): Promise<Reading> {
  const end = endOfHeaders(source)
  if (end === undefined) return { kind: 'refused', from: 'unknown', reason: 'its headers are too long' }
  const block = source.subarray(0, end)
  let parsed: Email
  try {
    parsed = await parser.default.parse(block, limits)
  } catch (error) {
    // A mail that cannot be read must not keep those behind it from being read.
    return { kind: 'refused', from: 'unknown', reason: `its headers cannot be read (${String(error)})` }
  }
  const { headers } = parsed
  const reason = ignoredFor(headers)
  if (reason !== undefined) return { kind: 'ignored', reason }
  const author = authorOf(parser, parsed)
  if (author === undefined)
    return { kind: 'refused', from: 'unknown', reason: 'it does not have one sender whom one could answer' }
  if (isAddressOf(own.address, author.address)) return { kind: 'ignored', reason: 'it is our own' }
  const verdict = checkSender(author.address, headers, own.authserv)
  if (!verdict.ok) return { kind: 'refused', from: author.address, reason: verdict.reason }
  return letterOf(parsed, author, own.address, createHash('sha256').update(block).digest('hex'))
}

/** Undefined: they do not end within what was read of the mail. */
function endOfHeaders(source: Buffer): number | undefined {
  const ends = [source.indexOf('\r\n\r\n'), source.indexOf('\n\n')].filter(at => at >= 0)
  return ends.length === 0 ? undefined : Math.min(...ends) + 2
}

/** Exactly one: where there are several, servers and people differ in which of them counts. */
function authorOf(parser: PostalMime, { headers }: Email): { address: string; name: string } | undefined {
  const [value, ...more] = headers.filter(({ key }) => key === 'from').map(header => header.value)
  const [from, ...others] = parser.default.addressParser(value ?? '')
  if (!from || from.address === undefined || more.length > 0 || others.length > 0) return undefined
  const address = normalised(from.address)
  return address === undefined ? undefined : { address, name: from.name }
}

const headerIn = (headers: readonly Header[], name: string): string | undefined =>
  headers.find(({ key }) => key === name)?.value.trim()

/** Why nobody waits for an answer; undefined: somebody may. RFC 3834 has most of it. */
function ignoredFor(headers: readonly Header[]): string | undefined {
  const value = (name: string) => headerIn(headers, name)?.toLowerCase()
  const submitted = value('auto-submitted')
  if (submitted !== undefined && !/^no\b/.test(submitted)) return 'a program sent it (Auto-Submitted)'
  if (/^(?:bulk|junk|list|auto_reply)\b/.test(value('precedence') ?? ''))
    return 'it is bulk mail (Precedence)'
  if (value('list-id') !== undefined) return 'it is from a mailing list (List-Id)'
  if (value('return-path') === '<>') return 'it is a notice about a mail (empty Return-Path)'
  return /^multipart\/report\b/.test(value('content-type') ?? '') ? 'it is a report about a mail' : undefined
}

function letterOf(
  parsed: Email,
  author: { address: string; name: string },
  own: string,
  digest: string,
): Reading {
  const addressed = (some: Email['to']) => mailboxes(some).flatMap(({ address }) => normalised(address) ?? [])
  const [to, cc] = [addressed(parsed.to), addressed(parsed.cc)]
  const isUs = (address: string) => isAddressOf(own, address)
  // Where we are not named we got a copy that the others do not know of, and they get no answer.
  const others = [...to, ...cc].some(isUs) ? [...to, ...cc].filter(address => !isUs(address)) : []
  const people = [...new Set([author.address, ...others])].sort()
  const jid = jidOf(people)
  if (jid === undefined)
    return { kind: 'refused', from: author.address, reason: 'it went to too many people for one chat' }
  const ids = idsIn(parsed.references)
  const inReplyTo = idsIn(parsed.inReplyTo).at(-1)
  const references = ids.length > 0 ? ids : inReplyTo === undefined ? [] : [inReplyTo]
  // A name that looks like somebody's address would pass for it.
  const name = author.name.includes('@') ? '' : shortened(author.name, longestName)
  return {
    kind: 'letter',
    letter: {
      jid,
      isRoom: people.length > 1,
      people: people.length > 1 ? people.join(', ') : name || author.address,
      sender: author.address,
      senderName: name || author.address,
      id: idsIn(parsed.messageId)[0] ?? `<${digest}@no-message-id>`,
      references,
      inReplyTo: inReplyTo ?? references.at(-1),
      isToUs: to.some(isUs),
      subject: shortened(parsed.subject ?? '', longestSubject),
    },
  }
}

const shortened = (text: string, length: number) => oneLine(text).trim().slice(0, length).toWellFormed()

/** Only what can stand in a header of ours. */
export const idsIn = (text: string | undefined): string[] =>
  [...(text ?? '').matchAll(/<[!-;=?-~]{1,250}>/g)].map(([id]) => id).slice(-mostIds)

/** What somebody wrote, the mail they answered, and the files. */
export interface Content {
  text: string
  history: string | undefined
  files: readonly { name: string; content: Buffer }[]
}

/** `isWhole`: the source is all of the mail, and not only its beginning. */
export async function readContent(
  parser: PostalMime,
  source: Buffer,
  { subject, references }: Letter,
  isWhole: boolean,
): Promise<Content> {
  let parsed: Email
  try {
    parsed = await parser.default.parse(source, limits)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { text: `${subject}\n[This mail cannot be read: ${reason}]`.trim(), history: undefined, files: [] }
  }
  const written = (parsed.text ?? textOfHtml(parsed.html ?? '')).replaceAll('\r\n', '\n')
  const { text, history } = references.length > 0 ? withoutHistory(written) : { text: written.trim() }
  // In an answer it only says what was asked.
  const titled =
    references.length > 0 || subject === '' ? text : text === '' ? subject : `Subject: ${subject}\n\n${text}`
  const left = titled.length - longestText
  const notes = [
    ...(left > 0 ? [`[${left} more characters of this mail were left out.]`] : []),
    ...(isWhole ? [] : ['[This mail is too large: its files were not taken.]']),
  ]
  return {
    text: [titled.slice(0, longestText).toWellFormed(), ...notes].filter(Boolean).join('\n'),
    history,
    files: isWhole ? parsed.attachments.map(fileOf) : [],
  }
}

function fileOf(
  { filename, mimeType, content }: Attachment,
  index: number,
): { name: string; content: Buffer } {
  const [, ending = 'bin'] = /\/([a-z\d]{1,8})$/.exec(mimeType) ?? []
  const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content as ArrayBuffer)
  return { name: shortened(filename ?? '', 200) || `file-${index + 1}.${ending}`, content: bytes }
}
