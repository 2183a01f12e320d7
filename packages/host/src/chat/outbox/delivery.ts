import { backoff } from '../../base/retry.ts'
import { oneLine } from '../../base/visible-text.ts'
import type { Change, MessageRow } from '../../store/types.ts'
import { withoutInternal } from '../channels/internal.ts'
import { withSender } from '../channels/sender.ts'
import { splitText } from '../channels/split.ts'
import { type Card, type Channel, DeliveryError } from '../channels/types.ts'

const attemptsBeforeFailing = 12
const pauseAfter = backoff({ firstMs: 2000, longestMs: 3_600_000 })
const longestReason = 500

/** Where in a chat something is said. */
type Place = Pick<MessageRow, 'jid' | 'thread'>

/** What a delivery has to look up. */
export interface Lookup {
  now(): number
  /** the buttons of a message; left out: none has any */
  card?(message: MessageRow): Card | undefined
  /** a message of ours, by its id; left out: none can be changed */
  message?(id: number): MessageRow | undefined
  /** what a group's agent is writing now, if its answer goes to this thread of this chat */
  liveText?(folder: string, place: Place): string | undefined
  /** the platform's id of the message that a reaction is for */
  reactedTo?(reaction: MessageRow): string | null
}

/** `attempts` is 1 for a message that only waits behind another of its chat, too: it has no error yet. */
const attemptsOf = ({ attempts, error }: MessageRow) => (error === null ? 0 : attempts)

/**
 * One attempt to deliver one message. A long one goes out in parts, and where that breaks off the next attempt goes on
 * with the part that failed: the row says how many were delivered. What a killed process had just delivered and not
 * noted is delivered again, under the same key.
 */
export async function attempt(
  message: MessageRow,
  channel: Channel | undefined,
  lookup: Lookup,
): Promise<Change> {
  const { id, nextAttemptAt } = message
  const attempts = attemptsOf(message) + 1
  let delivered = 0
  let of = 0
  let ids: readonly string[] = []
  try {
    const parts = channel ? partsOf(message, channel, lookup) : [message.text]
    of = parts.length
    // Where the text is split otherwise by now, it begins anew.
    delivered = message.partsTotal === of ? message.partsSent : 0
    ids = delivered === 0 ? [] : (message.externalIds ?? [])
    for (const text of parts.slice(delivered)) {
      if (!channel) throw new Error('no channel reaches this chat')
      const number = delivered + 1
      const sent = await deliver(
        { ...message, text },
        { number, of, key: `hw${id}-${number}` },
        channel,
        lookup,
      )
      if (sent !== undefined) ids = [...ids, sent]
      delivered++
    }
    const sentAt = lookup.now()
    const parted = { partsSent: of, partsTotal: of, ...(ids.length > 0 && { externalIds: ids }) }
    return { id, status: 'sent', attempts, nextAttemptAt, ...parted, error: null, sentAt }
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, longestReason)
    const { retryAfterMs, isFinal = false } = error instanceof DeliveryError ? error : {}
    // Whoever is asked to wait has done nothing wrong.
    const counted = retryAfterMs === undefined ? attempts : Math.max(1, attempts - 1)
    return {
      id,
      status: isFinal || counted >= attemptsBeforeFailing ? 'failed' : 'pending',
      attempts: counted,
      nextAttemptAt: lookup.now() + (retryAfterMs ?? pauseAfter(counted)),
      partsSent: delivered,
      partsTotal: of,
      ...(ids.length > 0 && { externalIds: ids }),
      error: delivered === 0 ? reason : `${delivered} of ${of} parts were delivered; then: ${reason}`,
      sentAt: null,
    }
  }
}

async function deliver(
  message: MessageRow,
  part: { number: number; of: number; key: string },
  channel: Channel,
  lookup: Lookup,
): Promise<string | undefined> {
  if (message.kind === 'edit') {
    const original = lookup.message?.(Number(message.messageId))
    const id = original?.externalIds?.at(-1)
    // One that has not arrived, or that cannot be changed there, stays as it is.
    if (!original || id === undefined) return undefined
    const { jid, thread } = original
    try {
      await channel.edit?.({ jid, thread, id }, { ...message, card: lookup.card?.(original) })
    } catch (error) {
      // The next change takes its place, or the answer, which must not wait for it unless the platform says so.
      const mustWait = error instanceof DeliveryError && error.retryAfterMs !== undefined
      if (mustWait || !isOfNow(message, original)) throw error
    }
    return undefined
  }
  const isLast = part.number === part.of
  const replaced = part.number === 1 ? await replace(message, isLast, channel, lookup) : undefined
  if (replaced !== undefined) {
    // What was changed cannot take files along.
    if (isLast && message.attachments) await channel.send({ ...message, text: '' }, part)
    return replaced
  }
  const card = isLast && channel.showsCards ? lookup.card?.(message) : undefined
  const messageId =
    message.kind === 'reaction' && lookup.reactedTo ? lookup.reactedTo(message) : message.messageId
  const attachments = isLast ? message.attachments : undefined
  const sent = await channel.send({ ...message, messageId, attachments, ...(card && { card }) }, part)
  return typeof sent === 'string' ? sent : undefined
}

/** Changes the message that showed the agent at work into what it says; undefined: there is none that could be changed. */
async function replace(
  message: MessageRow,
  isLast: boolean,
  channel: Channel,
  lookup: Lookup,
): Promise<string | undefined> {
  const original = message.replaces === undefined ? undefined : lookup.message?.(message.replaces)
  const id = original?.externalIds?.at(-1)
  if (!original || id === undefined || !channel.edit) return undefined
  const { jid, thread } = original
  // A follow-up in another thread is answered there.
  if (thread !== message.thread || message.sender !== null) {
    await channel.edit({ jid, thread, id }, { ...message, kind: 'edit', text: 'Done.' })
    return undefined
  }
  const card = isLast && channel.showsCards ? lookup.card?.(message) : undefined
  try {
    await channel.edit({ jid, thread, id }, { ...message, attachments: undefined, ...(card && { card }) })
    return id
  } catch (error) {
    // Somebody has deleted it, or it cannot be changed any more: the answer is a message of its own.
    if (error instanceof DeliveryError && error.isFinal) return undefined
    throw error
  }
}

/** A change of the message that shows the agent at work, but for the last. */
const isOfNow = (edit: MessageRow, changed: MessageRow | undefined): boolean =>
  changed?.kind === 'progress' && edit.replaces === undefined

/** None where nothing is left to say. */
function partsOf(message: MessageRow, channel: Channel, lookup: Lookup): string[] {
  const { kind } = message
  if (kind === 'reaction') return [message.text]
  const changed = kind === 'edit' ? lookup.message?.(Number(message.messageId)) : undefined
  // What somebody is to decide about is shown to the letter.
  const isExact = (changed?.kind ?? kind) === 'approval'
  const split = (text: string) => splitText(text, channel.messageLimit, { isExact })
  if (kind === 'edit') {
    // As in `replace`: an answer in another thread does not come here, nor do its words before it is whole.
    const isHere = changed !== undefined && changed.thread === message.thread
    const words = isHere && isOfNow(message, changed) ? lookup.liveText?.(message.group, changed) : undefined
    return [split(words === undefined ? message.text : `${words} …`)[0] ?? '']
  }
  const text = withoutInternal(message.text)
  if (text.trim() === '') return message.attachments ? [''] : []
  const name = message.sender === null || channel.showsSender ? undefined : shownSender(message.sender)
  return split(name === undefined ? text : withSender(name, text))
}

/** A name that cannot end its own emphasis or begin a line of its own. */
const shownSender = (name: string) => oneLine(name.replaceAll('*', '\n')).trim()
