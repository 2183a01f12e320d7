import { type Outcome, type Payload, payloads } from '@hatchway/protocol'
import { done, type Refused, refused } from '../base/outcome.ts'
import { named } from '../base/visible-text.ts'
import type { Traits } from '../guard/guard.ts'
import { largeMessageBytes } from '../store/large-messages.ts'
import type { NewMessage, Transaction } from '../store/types.ts'
import { storeWork } from './requests.ts'
import { type CommandContext, defineCommand, type Target } from './types.ts'

/** The chat that is meant: the one named, or the own one. An operator has none of their own. */
const chat = (jid: string | undefined, { actor }: CommandContext): string | undefined =>
  jid ?? (actor.kind === 'group' ? actor.group.jid : undefined)

const chatTarget = (payload: { jid?: string | undefined }, context: CommandContext): Target | Outcome => {
  const jid = chat(payload.jid, context)
  return jid === undefined
    ? refused('invalid_field', 'jid: is required, as an operator has no chat')
    : { jid }
}

/** Why the group may not say so much, if so. */
function tooManyMessageBytes(
  folder: string,
  bytes: number,
  { transaction, limits }: CommandContext,
): Refused | undefined {
  if (bytes <= largeMessageBytes) return undefined
  // The oldest are forgotten every minute; until then there is as much room again.
  const most = 2 * limits.messageBytes
  if (transaction.largeMessageBytes(folder) + bytes <= most) return undefined
  return refused(
    'quota_exceeded',
    `The group’s large messages would hold more than ${most} bytes. Wait until the oldest are delivered and forgotten, or send a file.`,
  )
}

type Content = Pick<NewMessage, 'kind' | 'text' | 'sender' | 'speech' | 'messageId'>

const notSaidHere = refused(
  'not_found',
  'reply_to: is not the id of a message that people wrote in this chat. Take it from their <message>, or leave it out.',
)

/**
 * What a message quotes: something that was said to the same group in the same chat. Where the platform has no id for it,
 * nothing is quoted.
 */
export function quoted(
  replyTo: string | undefined,
  { folder, jid }: { folder: string; jid: string },
  transaction: Pick<Transaction, 'heard'>,
): { ok: true; answers: Pick<NewMessage, 'replyTo' | 'thread'> } | Refused {
  if (replyTo === undefined) return { ok: true, answers: {} }
  const row = /^\d{1,15}$/.test(replyTo) ? transaction.heard(Number(replyTo)) : undefined
  if (row?.group !== folder || row.jid !== jid || row.channel === 'host') return notSaidHere
  const { externalId, thread } = row
  if (externalId === null) return { ok: true, answers: {} }
  return { ok: true, answers: { replyTo: externalId, ...(thread !== undefined && { thread }) } }
}

/** The outbox row is the promise to deliver (promise 4); a channel makes it true later. */
const queue = (
  named: string | undefined,
  content: Content,
  context: CommandContext,
  replyTo?: string,
): Outcome => {
  const { transaction, actor, seq, now } = context
  const jid = chat(named, context)
  if (jid === undefined) return refused('invalid_field', 'jid: is required, as an operator has no chat')
  const group = actor.kind === 'group' ? actor.group : transaction.groupByJid(jid)
  if (!group) return refused('not_found', 'No group is registered for this chat.')
  const bytes = Buffer.byteLength(content.text) + Buffer.byteLength(content.speech?.text ?? '')
  const tooMuch = tooManyMessageBytes(group.folder, bytes, context)
  if (tooMuch) return tooMuch
  const quote = quoted(replyTo, { folder: group.folder, jid }, transaction)
  if (!quote.ok) return quote
  transaction.insertMessage({
    id: seq,
    group: group.folder,
    jid,
    author: actor.kind === 'group' ? 'agent' : 'operator',
    createdAt: now.getTime(),
    ...content,
    ...quote.answers,
  })
  context.effect({ kind: 'message_queued' })
  return done({ message_id: String(seq), status: 'queued' })
}

/** Files are copied before there is a message: that takes its time, and may come to nothing. */
const sendFiles = (payload: Payload<'send_message'>, context: CommandContext): Outcome | null => {
  const { actor, transaction } = context
  if (actor.kind !== 'group') return refused('unavailable', 'An operator sends files in the chat.')
  const { folder } = actor.group
  const jid = payload.jid ?? actor.group.jid
  const quote = quoted(payload.reply_to, { folder, jid }, transaction)
  if (!quote.ok) return quote
  return storeWork(
    {
      name: 'send_message',
      input: { ...payload, jid },
      otherwise: 'This host does not send files.',
    },
    context,
  )
}

/** What is said in another chat than the own one is seen by others. */
const elsewhere = (
  name: string,
  jid: string | undefined,
  does: string,
  { actor }: CommandContext,
  payload: Record<string, unknown>,
): Traits | 'local' =>
  actor.kind !== 'group' || jid === undefined || jid === actor.group.jid
    ? 'local'
    : {
        action: { name, summary: `${does} the chat ${named(jid)}`, payload: { jid, ...payload } },
        reach: 'sink',
        reads: { corrupted: false, secret: false },
      }

export const sendMessage = defineCommand({
  type: 'send_message',
  payload: payloads.send_message,
  permission: { main: 'any', others: 'own' },
  target: (payload, context) => {
    const { jid, reply_to } = payload
    const { actor } = context
    // What was said to a group was said in its own chat. Nobody is asked about what would be refused.
    const isElsewhere = actor.kind === 'group' && jid !== undefined && jid !== actor.group.jid
    return reply_to !== undefined && isElsewhere ? notSaidHere : chatTarget(payload, context)
  },
  guard: ({ jid, text, sender, speech, attachments }, context) =>
    elsewhere('send_message', jid, attachments ? 'send files to' : 'say something in', context, {
      text,
      ...(sender === undefined ? {} : { sender }),
      ...(speech ? { speech } : {}),
      ...(attachments ? { attachments } : {}),
    }),
  execute(payload, context) {
    const { jid, text, sender = null, speech = null } = payload
    if (payload.attachments) return sendFiles(payload, context)
    const content = { kind: 'text', text, sender, speech, messageId: null } as const
    return queue(jid, content, context, payload.reply_to)
  },
})

export const react = defineCommand({
  type: 'react',
  payload: payloads.react,
  permission: { main: 'any', others: 'own' },
  target: chatTarget,
  // Any few words can stand in the place of an emoji.
  guard: ({ jid, emoji, message_id }, context) =>
    elsewhere('react', jid, 'put a reaction into', context, { emoji, message_id }),
  execute: ({ jid, emoji, message_id }, context) =>
    queue(
      jid,
      { kind: 'reaction', text: emoji, sender: null, speech: null, messageId: message_id ?? null },
      context,
    ),
})
