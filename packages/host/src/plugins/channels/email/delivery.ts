import { escapeXml } from '@hatchway/protocol'
import type { NodemailerError } from 'nodemailer'
import { oneLine } from '../../../base/visible-text.ts'
import { DeliveryError, type Outgoing, type Part } from '../../../chat/channels/types.ts'
import { type MarkdownStyle, plain, renderMarkdown } from '../markdown.ts'
import { domainOf } from './addresses.ts'
import { idsIn } from './mail.ts'
import { explained, type Transport } from './servers.ts'
import type { EmailSettings } from './settings.ts'
import type { Threads } from './threads.ts'

export interface DeliveryOptions {
  settings: EmailSettings
  transport(): Promise<Transport>
  threads(): Threads
  /** the people of a chat who are written to */
  recipients(jid: string): readonly string[]
  /** tells our Message-IDs from those of other installations */
  installation(): string
  readFile(id: string): Promise<Buffer | undefined>
  assistant: string
  /** some of the people of a chat were not reached */
  unreached(reason: string): void
}

export const longestMessage = 50_000
/** Encoded, that is a little less than the 25 MB that many servers take. */
const mostFileBytes = 17_000_000
const longestSubject = 78
const longestName = 60

const html: MarkdownStyle = {
  text: escapeXml,
  bold: inner => `<b>${inner}</b>`,
  italic: inner => `<i>${inner}</i>`,
  strike: inner => `<s>${inner}</s>`,
  code: raw => `<code>${escapeXml(raw)}</code>`,
  block: raw => `<pre>${escapeXml(raw)}</pre>`,
  link: (inner, url) => `<a href="${escapeXml(url)}">${inner}</a>`,
  quote: inner => `<blockquote>${inner}</blockquote>`,
}

/** Not every program that shows mail keeps line breaks and blanks as they are. */
const shownAsHtml = (markdown: string): string =>
  renderMarkdown(markdown, html)
    .replaceAll(/\n +/g, indent => `\n${'&nbsp;'.repeat(indent.length - 1)}`)
    .replaceAll('\n', '<br>')

const idOf = (key: string, installation: string, address: string): string =>
  `<${key.replace(/[^\w-]/g, '')}.${installation}@${domainOf(address)}>`

export function createDelivery(options: DeliveryOptions): (message: Outgoing, part: Part) => Promise<string> {
  const { settings } = options
  const ownId = (key: string) => idOf(key, options.installation(), settings.address)

  /** Where it belongs: below the mail that it answers, or at the beginning of a thread. */
  const placeOf = (message: Outgoing, { number, of, key }: Part, text: string) => {
    const [root] = idsIn(message.thread)
    if (root !== undefined) {
      const thread = options.threads().find(message.jid, root)
      const references = thread?.references ?? [root]
      const answered = idsIn(message.replyTo ?? undefined)[0] ?? references.at(-1)
      return {
        subject: answerTo(thread?.subject ?? ''),
        inReplyTo: answered,
        references: [...new Set([...references, ...(answered === undefined ? [] : [answered])])],
        autoSubmitted: 'auto-replied',
      }
    }
    const first = number === 1 ? undefined : ownId(key.replace(/-\d+$/, '-1'))
    return {
      subject: first === undefined ? titleOf(text) : `Part ${number} of ${of}`,
      inReplyTo: first,
      references: first === undefined ? [] : [first],
      autoSubmitted: 'auto-generated',
    }
  }

  /** The files that fit into one mail, and a line for each that does not. */
  const filesOf = async ({ attachments = [] }: Outgoing) => {
    const files: { filename: string; content: Buffer; contentType: string }[] = []
    const notes: string[] = []
    let room = mostFileBytes
    for (const { id, name, type } of attachments) {
      const content = await options.readFile(id)
      const filename = oneLine(name).trim() || 'file'
      if (content === undefined) notes.push(`[${filename} is no longer kept.]`)
      else if (content.length > room)
        notes.push(`[${filename} was left out: the files of one mail may have ${mostFileBytes / 1e6} MB.]`)
      else {
        room -= content.length
        files.push({ filename, content, contentType: type })
      }
    }
    return { files, notes }
  }

  const compose = async (message: Outgoing, part: Part) => {
    const { files, notes } = await filesOf(message)
    const written = [message.text, ...notes].filter(Boolean).join('\n\n')
    // What somebody is to decide about is shown to the letter.
    const isExact = message.kind === 'approval'
    const text = isExact ? written : renderMarkdown(written, plain) || written
    const { subject, inReplyTo, references, autoSubmitted } = placeOf(message, part, text)
    return {
      from: { name: shownName(message.sender, options.assistant), address: settings.address },
      to: [...options.recipients(message.jid)],
      messageId: ownId(part.key),
      subject: subject || options.assistant,
      ...(inReplyTo !== undefined && { inReplyTo, references }),
      headers: {
        // Programs that answer mail by themselves leave alone what a program sent, and so do we (RFC 3834).
        'Auto-Submitted': autoSubmitted,
        'X-Auto-Response-Suppress': 'All',
      },
      text,
      ...(!isExact && { html: shownAsHtml(written) }),
      attachments: files,
      // The time it was said, and the same at each attempt.
      date: new Date(message.createdAt),
    }
  }

  return async (message, part) => {
    if (message.kind === 'reaction')
      throw new DeliveryError('There are no reactions in e-mail. Answer in words.', { isFinal: true })
    const mail = await compose(message, part)
    try {
      const { rejected, response, serverMessageId } = await (await options.transport()).sendMail(mail)
      // Sending it again would reach the others twice.
      if (rejected.length > 0) options.unreached(`${rejected.join(', ')}: not reached (${response})`)
      return serverMessageId ?? mail.messageId
    } catch (error) {
      throw new DeliveryError(explained(error, 'smtp', settings), {
        isFinal: isFinal(error),
        cause: undefined,
      })
    }
  }
}

/** who we are, or how the line is encrypted (RFC 4954) */
const signInCodes: ReadonlySet<number> = new Set([530, 534, 535, 538])

/** The server has refused this mail or its address, and not only us: a password can be put right. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, permanent, responseCode }: NodemailerError = error
  if (code === 'EMESSAGE' && responseCode === undefined) return true
  if (responseCode !== undefined && signInCodes.has(responseCode)) return false
  return permanent === true && (code === 'EENVELOPE' || code === 'EMESSAGE')
}

const answerTo = (subject: string): string =>
  subject === '' || /^(?:re|aw|sv|antw)\s*:/i.test(subject) ? subject : `Re: ${subject}`

/** Its first line. */
function titleOf(text: string): string {
  const line = oneLine(text.trim().split('\n', 1)[0] ?? '').trim()
  return line.length <= longestSubject ? line : `${line.slice(0, longestSubject - 1).toWellFormed()}…`
}

/** No sign in it that could make it look like an address. */
function shownName(sender: string | null, assistant: string): string {
  const name = oneLine((sender ?? '').replaceAll(/[<>@"\\,;:\s]+/g, ' '))
    .trim()
    .slice(0, longestName)
    .toWellFormed()
  return name === '' ? assistant : `${name} (${assistant})`
}
