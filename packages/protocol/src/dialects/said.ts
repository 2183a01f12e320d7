import type { InputContext, InputMessage } from '../dialect.ts'

/** What people said, as the hosts of other projects put it into words for their agents. */
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, character => entities[character] ?? character)

const element = ({ sender, sender_name, text }: InputMessage, time: string): string =>
  `<message sender="${escapeXml(sender_name || sender)}" time="${escapeXml(time)}">${escapeXml(text)}</message>`

const list = (elements: readonly string[]): string => `<messages>\n${elements.join('\n')}\n</messages>`

/** What the host says before it, in Pynchy's element; none of the others has one of its own. */
export const withNotices = (notices: readonly string[], text: string): string => {
  if (notices.length === 0) return text
  const lines = notices.map(notice => `- ${escapeXml(notice)}`).join('\n')
  return `<system_notices>\n${lines}\n</system_notices>\n${text}`
}

/** NovaBot's, mdclaw's and Pynchy's form: instants as they are. */
export const messagesPrompt = (messages: readonly InputMessage[], { notices }: InputContext): string =>
  withNotices(notices, list(messages.map(message => element(message, message.timestamp))))

/** NanoClaw names the zone, and tells each time as a clock on the wall of that zone shows it. */
export const nanoclawPrompt = (
  messages: readonly InputMessage[],
  { timezone, notices }: InputContext,
): string => {
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    hour12: true,
  })
  const elements = messages.map(message => element(message, clock.format(new Date(message.timestamp))))
  return withNotices(notices, `<context timezone="${escapeXml(timezone)}" />\n${list(elements)}`)
}
