import type { Change } from '../../store/settled.ts'
import type { MessageRow } from '../../store/types.ts'
import { withoutInternal } from '../channels/internal.ts'
import { splitText } from '../channels/split.ts'
import type { Channel } from '../channels/types.ts'

const attemptsBeforeFailing = 12
const longestPauseMs = 3_600_000
const longestReason = 500

/** `attempts` is 1 for a message that only waits behind another of its chat, too: it has no error yet. */
const attemptsOf = ({ attempts, error }: MessageRow) => (error === null ? 0 : attempts)

/**
 * One attempt to deliver one message. A long one goes out in parts, and where that breaks off the next attempt goes on
 * with the part that failed: the row says how many were delivered. What a killed process had just delivered and not
 * noted is delivered again.
 */
export async function attempt(
  message: MessageRow,
  channel: Channel | undefined,
  now: () => number,
): Promise<Change> {
  const attempts = attemptsOf(message) + 1
  let delivered = 0
  let of = 0
  try {
    const parts = channel ? partsOf(message, channel) : [message.text]
    of = parts.length
    // Where the text is split otherwise by now, it begins anew.
    delivered = message.partsTotal === of ? message.partsSent : 0
    for (const text of parts.slice(delivered)) {
      if (!channel) throw new Error('no channel reaches this chat')
      const number = delivered + 1
      const attachments = number === of ? message.attachments : undefined
      await channel.send({ ...message, text, attachments }, { number, of })
      delivered++
    }
    return {
      id: message.id,
      status: 'sent',
      attempts,
      nextAttemptAt: message.nextAttemptAt,
      partsSent: of,
      partsTotal: of,
      error: null,
      sentAt: now(),
    }
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, longestReason)
    return {
      id: message.id,
      status: attempts >= attemptsBeforeFailing ? 'failed' : 'pending',
      attempts,
      nextAttemptAt: now() + Math.min(longestPauseMs, 1000 * 2 ** attempts),
      partsSent: delivered,
      partsTotal: of,
      error: delivered === 0 ? reason : `${delivered} of ${of} parts were delivered; then: ${reason}`,
      sentAt: null,
    }
  }
}

/** None where nothing is left to say. */
function partsOf(message: MessageRow, channel: Channel): string[] {
  if (message.kind === 'reaction') return [message.text]
  const text = withoutInternal(message.text)
  if (text.trim() === '') return message.attachments ? [''] : []
  const name = message.sender === null || channel.showsSender ? undefined : oneLine(message.sender)
  return splitText(name === undefined ? text : `*${name}*: ${text}`, channel.messageLimit)
}

/** A name that cannot end its own emphasis or begin a line of its own. */
const oneLine = (name: string) => name.replace(/[\p{C}\p{Zl}\p{Zp}*]+/gu, ' ').trim()
