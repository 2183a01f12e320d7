import { type EncryptedFile, encryptedFileSchema } from './encrypted-file.ts'
import { type Event, fields, text } from './events.ts'

/** What a message means to us. */
export interface Said {
  text: string
  file: { name: string; from: string | EncryptedFile } | undefined
  isMention: boolean
}

const fileTypes: ReadonlySet<string> = new Set(['m.file', 'm.image', 'm.audio', 'm.video'])

/** Undefined: nothing was said. Bots say theirs as a notice, which nobody answers: so two of them never talk for ever. */
export function saidIn(
  type: string,
  content: Event['content'],
  us: { id: string; name: string },
): Said | undefined {
  const msgtype = type === 'm.sticker' ? 'm.image' : text(content.msgtype)
  const body = text(content.body)
  if (body === undefined || msgtype === undefined || msgtype === 'm.notice') return undefined
  if (fileTypes.has(msgtype)) {
    const name = text(content.filename) ?? body
    const encrypted = encryptedFileSchema.safeParse(content.file)
    const from = encrypted.success ? encrypted.data : text(content.url)
    // A caption is beside the name of the file.
    const words = name === body ? '' : body
    return { ...called(words, content, us), file: from === undefined ? undefined : { name, from } }
  }
  if (msgtype === 'm.location') {
    const place = `[location: ${[text(content.geo_uri), body].filter(Boolean).join(' ')}]`
    return { text: place, file: undefined, isMention: false }
  }
  if (msgtype !== 'm.text' && msgtype !== 'm.emote') return undefined
  const words = called(answeredTo(content) === undefined ? body : withoutFallback(body), content, us)
  return { ...words, text: msgtype === 'm.emote' ? `* ${words.text}` : words.text, file: undefined }
}

/** Older apps put what is answered before the answer. */
function withoutFallback(body: string): string {
  return body.startsWith('> <@') || body.startsWith('> * <@') ? body.replace(/^(?:> ?.*\n)+\n?/, '') : body
}

/** Apps say whom they mention; older ones link to the user. The name before what is said is no part of it. */
function called(
  body: string,
  content: Event['content'],
  { id, name }: { id: string; name: string },
): Pick<Said, 'text' | 'isMention'> {
  const mentions = content['m.mentions']
  const named = fields(mentions).user_ids
  const isMention =
    mentions === undefined
      ? body.includes(id) || (text(content.formatted_body) ?? '').includes(`https://matrix.to/#/${id}"`)
      : Array.isArray(named) && named.includes(id)
  if (!isMention) return { text: body, isMention }
  const first = [`@${name}`, name, id].find(one => body.toLowerCase().startsWith(one.toLowerCase()))
  const rest = body.slice(first?.length ?? 0)
  return {
    text: first !== undefined && /^[\s:,]|^$/.test(rest) ? rest.replace(/^[\s:,]+/, '') : body,
    isMention,
  }
}

/** Anybody can write anything in the place of an id; what is none is not asked for: no server would answer. */
const eventId = (value: unknown): string | undefined => {
  const id = text(value)
  return id !== undefined && /^\$[\x21-\x7e]{1,254}$/.test(id) ? id : undefined
}

const relation = (content: Event['content']) => fields(content['m.relates_to'])

/** The message it answers. In a thread, apps name the last message for those who do not show threads. */
export function answeredTo(content: Event['content']): string | undefined {
  const { rel_type, is_falling_back, 'm.in_reply_to': answered } = relation(content)
  return rel_type === 'm.thread' && is_falling_back === true ? undefined : eventId(fields(answered).event_id)
}

export function threadOf(content: Event['content']): string | undefined {
  const { rel_type, event_id } = relation(content)
  return rel_type === 'm.thread' ? eventId(event_id) : undefined
}

/** What it changes, and to what. */
export function changeIn(content: Event['content']): { id: string; content: Event['content'] } | undefined {
  const { rel_type, event_id } = relation(content)
  const id = rel_type === 'm.replace' ? eventId(event_id) : undefined
  return id === undefined ? undefined : { id, content: fields(content['m.new_content']) }
}

export function reactionIn(content: Event['content']): { to: string; emoji: string } | undefined {
  const { rel_type, event_id, key } = relation(content)
  const to = eventId(event_id)
  const emoji = text(key)
  return rel_type === 'm.annotation' && to !== undefined && emoji ? { to, emoji } : undefined
}
