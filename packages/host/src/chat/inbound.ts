import { type ErrorCode, type Group, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { IncomingRow, NewIncoming } from '../store/agent-types.ts'
import { textWithFiles } from '../store/attachment-text.ts'
import type { Store } from '../store/types.ts'
import type { Approvals, Settled } from './approvals/approvals.ts'
import type { Choice, Chosen, Incoming, Received, Ruling } from './channels/types.ts'
import type { Questions } from './questions/questions.ts'

/**
 * What people say comes in here, whatever channel it took. In a chat nobody registered, or from somebody who is not on
 * the group's list, it is refused (promise 9); where the agent has to be called by name and is not, it is kept as
 * context for the next time it is. While an agent waits for an answer of theirs, what answers it goes there and calls
 * nobody; so does what decides whether an agent may do something. `/stop` ends what the agent is doing. Once stored it is never lost (promise 4).
 */
export interface Inbound {
  receive(channel: string, message: Incoming): Received
  /** an answer that was chosen in the card of a question */
  choose(channel: string, choice: Choice): Chosen
  /** what was decided in the card of something an agent is not to do without a person */
  decide(channel: string, ruling: Ruling): Settled
  /** the host's own word to a group's agent, which it gets along with whatever calls it next; once per `about` */
  note(group: Pick<Group, 'folder' | 'jid'>, about: string, text: string): void
  counts(): ReceptionCounts
}

interface ReceptionCounts {
  waiting: number
  context: number
  /** those that answered a question, or were about a decision */
  used: number
  repeated: number
  refused: number
}

const longestText = 100_000

export function createInbound(options: {
  store: Pick<Store, 'groups' | 'agents'>
  config: Pick<Config, 'agents' | 'groups'>
  now(): number
  /** something waits for an agent */
  kick(): void
  log?: Pick<Logger, 'warn'>
  /** it is stored */
  received?(row: IncomingRow): void
  /** what somebody puts on the group's list by saying so; undefined: it is about something else */
  todo?(group: Group, words: string): ((said: NewIncoming) => number | undefined) | undefined
  /** somebody wants the group's agent to stop what it is doing; left out: no agents are run here */
  stop?(group: Group, by: string): void
  /** what agents ask people; left out: nothing */
  questions?: Pick<Questions, 'meantBy' | 'take' | 'choose'>
  /** what they are not to do without people; left out: nothing */
  approvals?: Pick<Approvals, 'mayDecide' | 'meantBy' | 'choose'> | undefined
}): Inbound {
  const { store, config, now, kick, log, questions, approvals } = options
  const counts: ReceptionCounts = { waiting: 0, context: 0, used: 0, repeated: 0, refused: 0 }

  const refuse = (
    channel: string,
    { jid, sender }: Pick<Incoming, 'jid' | 'sender'>,
    code: ErrorCode,
    message: string,
  ) => {
    counts.refused++
    log?.warn({ channel, jid, sender, code }, 'what somebody said was refused')
    return { ok: false, error: refusal(code, message) } as const
  }

  const groupOf = (said: Pick<Incoming, 'jid'>) => store.groups().find(({ jid }) => jid === said.jid)

  const mayWrite = (group: Group, { sender }: Pick<Incoming, 'sender'>): boolean =>
    sendersOf(config, group)?.includes(sender) ?? true

  /** The group of the chat, if this sender may be heard in it. */
  const admit = (channel: string, said: Pick<Incoming, 'jid' | 'sender'>) => {
    const group = groupOf(said)
    if (!group) return refuse(channel, said, 'not_found', 'No group is registered for this chat.')
    if (!mayWrite(group, said)) {
      return refuse(channel, said, 'forbidden', 'This sender is not on the list of those who may write here.')
    }
    return { ok: true, group } as const
  }

  /** Whoever may decide need not be among those who may call the agent. Undefined: nothing is decided. */
  const decide = (channel: string, message: Incoming): Received | undefined => {
    const group = groupOf(message)
    if (!approvals || !group || message.attachments || message.text.length > longestText) return undefined
    const { sender, senderName } = message
    const person = { channel, sender, senderName }
    if (!mayWrite(group, message) && !approvals.mayDecide(group, person)) return undefined
    const text = message.text.toWellFormed()
    const taking = approvals.meantBy(
      group,
      person,
      withoutCall(text, triggerOf(group, config.agents.assistant)),
    )
    if (!taking) return undefined
    if ('code' in taking) return refuse(channel, message, taking.code, taking.message)
    const said: NewIncoming = { ...saidIn(channel, group, message, text), status: 'used' }
    const id = store.agents.isKnown(said) ? undefined : keep(said, taking)
    counts[id === undefined ? 'repeated' : 'used']++
    return { ok: true, id, status: 'used' }
  }

  const saidIn = (channel: string, group: Group, message: Incoming, text: string) => ({
    group: group.folder,
    jid: group.jid,
    channel,
    externalId: message.externalId ?? null,
    sender: message.sender,
    senderName: message.senderName,
    text,
    ...(message.attachments && { attachments: message.attachments }),
    createdAt: Math.min(message.at, now()),
  })

  const keep = (message: NewIncoming, storing: (message: NewIncoming) => number | undefined) => {
    const id = storing(message)
    if (id !== undefined) options.received?.({ ...message, id, runId: null })
    return id
  }
  const receive = (message: NewIncoming) => keep(message, store.agents.receive)

  /** undefined: it answers nothing, or too late */
  const answer = (
    group: Group,
    words: string,
    message: NewIncoming,
    isForAgent: boolean,
  ): number | undefined => {
    const meant = questions?.meantBy(group, words, isForAgent)
    // One that came before has answered what it could; what is asked now is another question.
    if (!meant || store.agents.isKnown(message)) return undefined
    return keep(message, said => questions?.take(meant, said))
  }

  return {
    receive(channel, message) {
      const decided = decide(channel, message)
      if (decided) return decided
      const admitted = admit(channel, message)
      if (!admitted.ok) return admitted
      const { group } = admitted
      const text = message.text.toWellFormed()
      const { attachments } = message
      if (text.trim() === '' && !attachments)
        return refuse(channel, message, 'invalid_field', 'text: is empty')
      if (text.length > longestText) {
        return refuse(channel, message, 'too_large', `A message may have ${longestText} characters.`)
      }
      const said = saidIn(channel, group, message, text)
      const isForAgent = isCalled(text, group, config.agents.assistant)
      const spoken = withoutCall(text, triggerOf(group, config.agents.assistant))
      if (/^\/stop$/i.test(spoken.trim()) && !attachments) {
        const id = receive({ ...said, status: 'used' })
        counts[id === undefined ? 'repeated' : 'used']++
        if (id !== undefined) options.stop?.(group, message.senderName || message.sender)
        return { ok: true, id, status: 'used' }
      }
      // Whoever asked for a file is told where it is.
      const words = textWithFiles({ text: spoken, attachments })
      const noting = attachments ? undefined : options.todo?.(group, words)
      if (noting) {
        // The agent hears of it with whatever calls it next.
        const id = keep({ ...said, status: 'context' }, noting)
        counts[id === undefined ? 'repeated' : 'context']++
        return { ok: true, id, status: 'context' }
      }
      const answered = answer(group, words, { ...said, status: 'used' }, isForAgent)
      if (answered !== undefined) {
        counts.used++
        return { ok: true, id: answered, status: 'used' }
      }
      const status = isForAgent ? 'waiting' : 'context'
      const id = receive({ ...said, status })
      counts[id === undefined ? 'repeated' : status]++
      if (id !== undefined && status === 'waiting') kick()
      return { ok: true, id, status }
    },
    choose(channel, choice) {
      const admitted = admit(channel, choice)
      if (!admitted.ok) return admitted
      if (!questions) return { ok: false, error: refusal('unavailable', 'Nobody asks anything here.') }
      const chosen = questions.choose(admitted.group, choice)
      return 'code' in chosen ? { ok: false, error: chosen } : { ok: true, question: chosen }
    },
    decide(channel, { jid, id, sender, senderName, ...spoken }) {
      const group = groupOf({ jid })
      if (!group)
        return refuse(channel, { jid, sender }, 'not_found', 'No group is registered for this chat.')
      if (!approvals) return { ok: false, error: refusal('unavailable', 'Nobody is asked here.') }
      return approvals.choose(group, id, spoken, { channel, sender, senderName })
    },
    note(group, about, text) {
      receive({
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

/** What is said when the name that calls stands before or behind it. */
const withoutCall = (text: string, trigger: string): string => {
  const { source, flags } = callPattern(trigger)
  return text
    .normalize()
    .trim()
    .replace(new RegExp(`^${source}[\\s,:;]*|${source}$`, flags), '')
}
