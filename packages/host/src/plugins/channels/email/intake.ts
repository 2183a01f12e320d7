import type { Logger } from 'pino'
import type { ChannelHost, Incoming, Received } from '../../../chat/channels/types.ts'
import type { Attachment } from '../../../store/types.ts'
import { type Content, type Letter, type PostalMime, readContent, readHeaders } from './mail.ts'
import type { FoundMail } from './mailbox.ts'
import type { EmailSettings } from './settings.ts'
import { createThreads, rootOf } from './threads.ts'

/** Hands the mails that somebody wrote to the host. */
export interface Intake {
  /** resolves once the mail is stored, refused or ignored; whether it was somebody's words */
  take(mail: FoundMail): Promise<boolean>
  /** whether it is the host that failed, such as by a full disk, and not the mail server */
  isOwnFailure(error: unknown): boolean
}

export interface IntakeOptions {
  host: ChannelHost
  parser: PostalMime
  settings: EmailSettings
  /** what our Message-IDs have in them */
  installation(): string
  received(said: Incoming, received: Received): void
  refused(reason: string): void
  log: Logger
}

/** of one mail */
const mostFiles = 20

export function createIntake(options: IntakeOptions): Intake {
  const { host, parser, settings, log } = options
  const isOwnId = (id: string) => id.includes(`.${options.installation()}@`)
  let failure: unknown

  const hear = async (mail: FoundMail, letter: Letter) => {
    const whole = await mail.fetchAll()
    try {
      const content = await readContent(parser, whole ?? mail.source, letter, whole !== undefined)
      const incoming = await incomingOf(host, letter, content, { at: mail.at, isOwnId })
      const received = await host.receive(incoming)
      options.received(incoming, received)
      // Not for strangers: they could push out the threads of those who are heard.
      if (received.ok) createThreads(host).follow(letter)
    } catch (error) {
      failure = error
      throw error
    }
  }

  return {
    async take(mail) {
      const reading = await readHeaders(parser, mail.source, settings)
      const { uid } = mail
      if (reading.kind === 'letter') await hear(mail, reading.letter)
      else if (reading.kind === 'ignored') log.info({ uid, reason: reading.reason }, 'a mail was ignored')
      else {
        const { from, reason } = reading
        log.warn({ uid, from, reason }, 'a mail was refused')
        options.refused(`A mail from ${from} was refused: ${reason}.`)
      }
      return reading.kind === 'letter'
    },
    isOwnFailure: error => error === failure,
  }
}

async function incomingOf(
  host: ChannelHost,
  letter: Letter,
  content: Content,
  { at, isOwnId }: { at: number; isOwnId(id: string): boolean },
): Promise<Incoming> {
  const { jid, sender, senderName, id, inReplyTo } = letter
  host.knows({ jid, name: letter.people, isGroup: letter.isRoom })
  const attachments: Attachment[] = []
  const lines = [content.text]
  for (const file of content.files.slice(0, mostFiles)) {
    const taken = await host.takeFile({ jid, sender }, { name: file.name, content: chunksOf(file.content) })
    if (taken.ok) attachments.push(taken.attachment)
    else lines.push(`[${file.name} was not taken: ${taken.error.message}]`)
  }
  const left = content.files.length - mostFiles
  if (left > 0) lines.push(`[${left} more files were not taken: ${mostFiles} of one mail are.]`)
  const isAnswer = inReplyTo !== undefined && isOwnId(inReplyTo)
  return {
    jid,
    sender,
    senderName,
    externalId: id,
    text: lines.filter(Boolean).join('\n'),
    ...(attachments.length > 0 && { attachments }),
    at,
    mentioned: isAnswer || (letter.isRoom && letter.isToUs),
    thread: rootOf(letter),
    ...(inReplyTo !== undefined && { quote: { id: inReplyTo, text: content.history } }),
  }
}

async function* chunksOf(content: Buffer): AsyncGenerator<Uint8Array> {
  yield content
}
