import { type ErrorCode, type Group, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Incoming, Received } from '../channels/types.ts'
import type { Config } from '../config.ts'
import type { IncomingRow, NewIncoming } from '../store/agent-types.ts'
import type { Store } from '../store/types.ts'

/**
 * What people say comes in here, whatever channel it took. In a chat nobody registered, or from somebody who is not on
 * the group's list, it is refused (promise 9); where the agent has to be called by name and is not, it is kept as
 * context for the next time it is. Once stored it is never lost (promise 4).
 */
export interface Reception {
  receive(channel: string, message: Incoming): Received
  /** the host's own word to a group's agent, which it gets along with whatever calls it next; once per `about` */
  note(group: Pick<Group, 'folder' | 'jid'>, about: string, text: string): void
  counts(): ReceptionCounts
}

interface ReceptionCounts {
  waiting: number
  context: number
  repeated: number
  refused: number
}

const longestText = 100_000

export function createReception(options: {
  store: Pick<Store, 'groups' | 'agents'>
  config: Pick<Config, 'agents' | 'groups'>
  now(): number
  /** something waits for an agent */
  kick(): void
  log?: Pick<Logger, 'warn'>
  /** it is stored */
  received?(row: IncomingRow): void
}): Reception {
  const { store, config, now, kick, log } = options
  const counts: ReceptionCounts = { waiting: 0, context: 0, repeated: 0, refused: 0 }

  const refuse = (channel: string, { jid, sender }: Incoming, code: ErrorCode, message: string): Received => {
    counts.refused++
    log?.warn({ channel, jid, sender, code }, 'what somebody said was refused')
    return { ok: false, error: refusal(code, message) }
  }

  const keep = (message: NewIncoming): number | undefined => {
    const id = store.agents.receive(message)
    if (id !== undefined) options.received?.({ ...message, id, runId: null })
    return id
  }

  return {
    receive(channel, message) {
      const group = store.groups().find(({ jid }) => jid === message.jid)
      if (!group) return refuse(channel, message, 'not_found', 'No group is registered for this chat.')
      const senders = sendersOf(config, group)
      if (senders && !senders.includes(message.sender)) {
        return refuse(
          channel,
          message,
          'forbidden',
          'This sender is not on the list of those who may write here.',
        )
      }
      const text = message.text.toWellFormed()
      if (text.trim() === '') return refuse(channel, message, 'invalid_field', 'text: is empty')
      if (text.length > longestText) {
        return refuse(channel, message, 'too_large', `A message may have ${longestText} characters.`)
      }
      const status = isCalled(text, group, config.agents.assistant) ? 'waiting' : 'context'
      const id = keep({
        group: group.folder,
        jid: group.jid,
        channel,
        externalId: message.externalId ?? null,
        sender: message.sender,
        senderName: message.senderName,
        text,
        status,
        createdAt: Math.min(message.at, now()),
      })
      counts[id === undefined ? 'repeated' : status]++
      if (id !== undefined && status === 'waiting') kick()
      return { ok: true, id, status }
    },
    note(group, about, text) {
      keep({
        group: group.folder,
        jid: group.jid,
        channel: 'host',
        externalId: about,
        sender: 'host',
        senderName: 'Hatchway',
        text,
        status: 'context',
        createdAt: now(),
      })
    },
    counts: () => ({ ...counts }),
  }
}

/** Folders are told apart without case, and so are they here: a list that is overlooked would let everybody in. */
function sendersOf({ groups }: Pick<Config, 'groups'>, { folder }: Group): readonly string[] | undefined {
  const lists = Object.entries(groups)
    .filter(([name]) => name.toLowerCase() === folder.toLowerCase())
    .flatMap(([, { senders }]) => (senders ? [senders] : []))
  return lists.length === 0 ? undefined : lists.flat()
}

/** The main group's chat is the operator's own: whatever is said there is for the agent. */
const isCalled = (text: string, group: Group, assistant: string): boolean =>
  group.main || !group.requires_trigger || callPattern(triggerOf(group, assistant)).test(text.normalize())

export const triggerOf = (group: Pick<Group, 'trigger'>, assistant: string): string => {
  const own = group.trigger?.trim() ?? ''
  return own === '' ? `@${assistant}` : own
}

/** As a word of its own: `@hatch` calls in "hi @Hatch!", and not in "mail@hatch" or "@hatchling". */
const callPattern = (trigger: string): RegExp => {
  const words = trigger.normalize().split(/\s+/).map(RegExp.escape).join('\\s+')
  const letter = '[\\p{L}\\p{M}\\p{N}_]'
  return new RegExp(`(?<!${letter})${words}(?!${letter})`, 'iu')
}
