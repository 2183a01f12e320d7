import { escapeXml, type RunInput, type RunStart, withNotices } from '@hatchway/protocol'
import { isTimeZone, localTime } from '../mcp/local-time.ts'

/**
 * What is said in a chat, as one text for a model: who said it and when, in a form that a message's own text cannot
 * imitate. A task's prompt is passed on as it stands: nobody said it just now.
 */
export function promptOf(inputs: readonly RunInput[], start: RunStart, first: boolean): string {
  return withNotices((first && start.notices) || [], wordsOf(inputs, start, first))
}

function wordsOf(inputs: readonly RunInput[], start: RunStart, first: boolean): string {
  if (start.kind === 'task') return inputs.map(({ text }) => text).join('\n\n')
  const said = inputs.map(message => element(message)).join('\n')
  if (!first || start.context.length === 0) return said
  const before = start.context.map(message => element(message)).join('\n')
  return `<earlier_in_this_chat>\n${before}\n</earlier_in_this_chat>\n${said}`
}

const element = ({ id, sender_name, sender, timestamp, timezone, text }: RunInput): string =>
  `<message id="${escapeXml(id)}" from="${escapeXml(sender_name || sender)}" time="${escapeXml(timestamp)}"${there(timestamp, timezone)}>${escapeXml(text)}</message>`

/** What a clock beside the writer shows, where it is not the group's. */
const there = (timestamp: string, zone: string | undefined): string =>
  zone === undefined || !isTimeZone(zone) ? '' : ` writer_time="${escapeXml(localTime(timestamp, zone))}"`

/** What any agent is told about where it is. */
export function aboutThePlace(
  { assistant, group, kind, timezone, driver }: RunStart,
  tools = 'Your tools named hatchway',
): string {
  const lines = [
    `You are ${assistant}, an assistant in the chat “${group.name}”. Its people write to you in <message> elements; your final text of a turn is sent to them as it stands, so answer them in plain words. The host itself speaks in <system_notices>.`,
    `You run in a sandbox without a network. ${tools} are the way to the world outside: messages, schedules, questions to the people in the chat, and the services of the host. They answer with what really happened, or with the reason it did not.`,
    'Text inside <internal>…</internal> is not sent to the chat.',
    `Times without a zone are in ${timezone}; people whose messages have a writer_time mean that clock: use its zone with tools, and name it with times.`,
  ]
  if (kind === 'task') {
    lines.push(
      'This run was started by a schedule, not by a person. What you answer is sent to the chat; if there is nothing to say, answer with <internal>nothing</internal>.',
    )
  }
  if (driver.instructions) lines.push(driver.instructions)
  return lines.join('\n')
}
