import type { APIMessage, APIUser } from '@discordjs/core'
import type { Incoming } from '../../../chat/channels/types.ts'

/** What a message of Discord means to us. */

/** The accounts and roles that stand for the assistant. */
export interface Ourselves {
  user: string
  /** webhooks that belong to it speak for the assistant, too */
  application: string
  /** each server gives a bot a role of its own, which people mention by mistake */
  roles: ReadonlySet<string>
}

/** A message of the gateway names its author within the server, one of the HTTP API does not. */
export type SaidMessage = APIMessage & { member?: { nick?: string | null } | undefined }

type Person = Pick<Incoming, 'sender' | 'senderName'>

export const personOf = (
  { id, global_name, username }: Pick<APIUser, 'id' | 'global_name' | 'username'>,
  member?: { nick?: string | null } | undefined,
): Person => ({ sender: id, senderName: member?.nick || global_name || username || id })

const said = 0
const answered = 19

/** Undefined: a bot or webhook said it, we among them, or nobody did, such as where somebody has joined. */
export const speakerOf = (message: SaidMessage): Person | undefined =>
  message.author.bot ||
  message.webhook_id !== undefined ||
  (message.type !== said && message.type !== answered)
    ? undefined
    : personOf(message.author, message.member)

/** Whether the assistant said it. */
const isBy = (message: APIMessage, { user, application }: Ourselves): boolean =>
  message.author.id === user || (message.webhook_id !== undefined && message.application_id === application)

export function isMeant(message: APIMessage, ourselves: Ourselves): boolean {
  const { referenced_message } = message
  return (
    (message.mentions ?? []).some(({ id }) => id === ourselves.user) ||
    (message.mention_roles ?? []).some(role => ourselves.roles.has(role)) ||
    (message.type === answered && !!referenced_message && isBy(referenced_message, ourselves))
  )
}

/** What was said, without mentions of the bot, and with names instead of the ids of others. */
export function wordsOf(message: APIMessage, ourselves: Ourselves): string {
  const names = new Map((message.mentions ?? []).map(user => [user.id, personOf(user).senderName]))
  const words = (message.content ?? '')
    .replace(/<@(!|&)?(\d+)>/g, (whole, kind: string | undefined, id: string) => {
      if (kind === '&') return ourselves.roles.has(id) ? '' : whole
      if (id === ourselves.user) return ''
      const name = names.get(id)
      return name === undefined ? whole : `@${name}`
    })
    .replace(/<a?(:\w+:)\d+>/g, '$1')
  return [words === message.content ? words : words.trim(), ...besidesWords(message)]
    .filter(Boolean)
    .join('\n')
}

function besidesWords({ sticker_items, poll, message_snapshots }: APIMessage): string[] {
  return [
    ...(message_snapshots ?? []).map(({ message }) => `[forwarded: ${message.content}]`),
    ...(sticker_items ?? []).map(({ name }) => `[sticker: ${name}]`),
    ...(poll
      ? [
          `[poll: ${poll.question.text} (${poll.answers.map(({ poll_media }) => poll_media.text).join(', ')})]`,
        ]
      : []),
  ]
}

/** Files of the message, and of one that it forwards. */
export const filesIn = ({ attachments, message_snapshots }: APIMessage): { name: string; url: string }[] =>
  [
    ...(attachments ?? []),
    ...(message_snapshots ?? []).flatMap(({ message }) => message.attachments ?? []),
  ].map(({ filename, url }) => ({ name: filename, url }))

export function quoteIn(message: APIMessage, ourselves: Ourselves): Incoming['quote'] {
  const { referenced_message, message_reference } = message
  if (message.type !== answered) return undefined
  if (!referenced_message)
    return message_reference?.message_id === undefined ? undefined : { id: message_reference.message_id }
  const { author, webhook_id } = referenced_message
  const isPerson = author.id !== ourselves.user && webhook_id === undefined && !author.bot
  return {
    id: referenced_message.id,
    ...(isPerson && personOf(author)),
    text: wordsOf(referenced_message, ourselves),
  }
}
