import { createHash } from 'node:crypto'
import { type ErrorCode, type Group, type Refusal, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { refused } from '../base/outcome.ts'
import { oneLine } from '../base/visible-text.ts'
import type { Config } from '../config.ts'
import { textWithFiles } from '../store/attachment-text.ts'
import type { IncomingRow, NewIncoming, Quote, Store } from '../store/types.ts'
import type { Approvals, Settled } from './approvals/types.ts'
import type {
  Changed,
  Choice,
  Chosen,
  Incoming,
  Quoted,
  Reacted,
  Received,
  Ruling,
} from './channels/types.ts'
import { isNamed, isOperator, listFor } from './people.ts'
import type { Questions } from './questions/questions.ts'
import { isCalled, triggerOf, withoutCall } from './trigger.ts'

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
  /** somebody changed what they had said: whoever has not read it reads the new words, and an agent that has is told */
  changed(channel: string, change: Changed): void
  /** the agent is told along with whatever calls it next */
  reacted(channel: string, reaction: Reacted): void
  /** whether this person is heard in this chat */
  admits(channel: string, said: Pick<Incoming, 'jid' | 'sender'>): boolean
  /** the host's own word to a group's agent, which it gets along with whatever calls it next; once per `about` */
  note(group: Pick<Group, 'folder' | 'jid'>, about: string, text: string): void
  counts(): InboundCounts
}

interface InboundCounts {
  waiting: number
  context: number
  /** those that answered a question, or were about a decision */
  used: number
  repeated: number
  refused: number
}

const longestText = 100_000
/** of a message that is mentioned beside another */
const shownText = 200

const digest = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, 12)
const longestQuote = 1000
const longestName = 100
/** Some platforms take any text for one. */
const shownEmoji = (emoji: string): string =>
  /^\p{RGI_Emoji}$/v.test(emoji) ? emoji : oneLine(emoji).slice(0, 32).toWellFormed()
const shownName = (name: string): string => oneLine(name).slice(0, longestName).toWellFormed()
/** A part of what was said may be quoted; anything else is not what was said. */
const quotedFrom = (said: string, quoted = ''): string =>
  quoted !== '' && said.includes(quoted) ? quoted : said

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
  /** somebody wrote in a chat that nobody has registered */
  unknown?(channel: string, said: Incoming): void
  /** what somebody says in the main chat about chats that ask to be let in; undefined: it is about something else */
  pair?(text: string): ((by: string) => void) | undefined
  /** a message of ours, by the platform's id: whose, and its words where this group's agent may read them */
  sentAs?(group: Group, externalId: string): { by: string; text: string | undefined } | undefined
  /** what agents ask people; left out: nothing */
  questions?: Pick<Questions, 'meantBy' | 'take' | 'choose'>
  /** what they are not to do without people; left out: nothing */
  approvals?: Pick<Approvals, 'mayDecide' | 'meantBy' | 'choose'> | undefined
}): Inbound {
  const { store, config, now, kick, log, questions, approvals } = options
  const counts: InboundCounts = { waiting: 0, context: 0, used: 0, repeated: 0, refused: 0 }

  const refuse = (
    channel: string,
    { jid, sender }: Pick<Incoming, 'jid' | 'sender'>,
    code: ErrorCode,
    message: string,
  ) => {
    counts.refused++
    log?.warn({ channel, jid, sender, code }, 'what somebody said was refused')
    return refused(code, message)
  }

  const groupOf = (said: Pick<Incoming, 'jid'>) => store.groups().find(({ jid }) => jid === said.jid)

  const mayWrite = ({ folder }: Group, channel: string, { sender }: Pick<Incoming, 'sender'>): boolean => {
    const list = listFor(config, folder, 'senders')
    return list === undefined || isNamed(list, { channel, sender }, true)
  }

  /** The group of the chat, if this sender may be heard in it. */
  const admit = (channel: string, said: Pick<Incoming, 'jid' | 'sender'>) => {
    const group = groupOf(said)
    if (!group) return refuse(channel, said, 'not_found', 'No group is registered for this chat.')
    if (!mayWrite(group, channel, said)) {
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
    if (!mayWrite(group, channel, message) && !approvals.mayDecide(group, person)) return undefined
    const text = message.text.toWellFormed()
    const taking = approvals.meantBy(
      group,
      person,
      withoutCall(text, triggerOf(group, config.agents.assistant)),
    )
    if (!taking) return undefined
    if ('code' in taking) return refuse(channel, message, taking.code, taking.message)
    const said: NewIncoming = { ...saidIn(channel, group, message, text), status: 'used' }
    return taken(store.agents.isKnown(said) ? undefined : keep(said, taking), 'used')
  }

  /**
   * A message that somebody answers or reacts to, as far as the group's agent may read it: what this group said, and what
   * was said by people who are heard here. What another group said in this chat is no way to this group's agent.
   */
  const readable = (
    channel: string,
    group: Group,
    { id, sender, senderName, text }: Quoted,
  ): { by: string | undefined; text: string | undefined } => {
    const ours = options.sentAs?.(group, id)
    if (ours) return { ...ours, text: ours.text === undefined ? undefined : quotedFrom(ours.text, text) }
    const heard = store.agents.byExternalId(channel, group.jid, id)
    if (heard?.group === group.folder) return { by: heard.senderName, text: quotedFrom(heard.text, text) }
    const isHeard = sender !== undefined && mayWrite(group, channel, { sender })
    return { by: isHeard ? senderName : undefined, text: isHeard ? text : undefined }
  }

  const quoteIn = (channel: string, group: Group, quoted: Quoted): Quote => {
    const { by, text } = readable(channel, group, quoted)
    return {
      id: quoted.id,
      ...(by !== undefined && { senderName: shownName(by) }),
      ...(text !== undefined && { text: text.slice(0, longestQuote).toWellFormed() }),
    }
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
    ...(message.thread !== undefined && { thread: message.thread }),
    ...(message.quote && { quote: quoteIn(channel, group, message.quote) }),
    // Where a platform's clock is somebody else's word, it may be no time at all.
    createdAt: Number.isSafeInteger(message.at) ? Math.min(message.at, now()) : now(),
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

  /** Counts it, and says what has become of it. */
  const taken = (id: number | undefined, status: 'waiting' | 'context' | 'used'): Received => {
    counts[id === undefined ? 'repeated' : status]++
    return { ok: true, id, status }
  }

  const note: Inbound['note'] = (group, about, text) =>
    void receive({
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
  const isNew = (said: Omit<NewIncoming, 'status'>) => !store.agents.isKnown(said)
  /** Whoever lets chats in decides what an agent may be asked. */
  const mayPair = (group: Group, { channel, sender, senderName }: Omit<NewIncoming, 'status'>) =>
    approvals?.mayDecide(group, { channel, sender, senderName }) ?? true

  /** Why it cannot be said at all. */
  const unfit = ({ text, attachments }: Incoming): Refusal | undefined => {
    if (text.trim() === '' && !attachments) return refusal('invalid_field', 'text: is empty')
    return text.length > longestText
      ? refusal('too_large', `A message may have ${longestText} characters.`)
      : undefined
  }

  /** What was said in a group by somebody who is heard there: the first that it can be, it is. */
  const hear = (
    group: Group,
    said: Omit<NewIncoming, 'status'>,
    { senderName, sender, mentioned = false, role }: Incoming,
  ): Received => {
    const { text, attachments } = said
    const by = senderName || sender
    const { assistant } = config.agents
    const spoken = withoutCall(text, triggerOf(group, assistant))
    if (/^\/stop$/i.test(spoken.trim()) && !attachments) {
      const id = receive({ ...said, status: 'used' })
      if (id !== undefined) options.stop?.(group, by)
      return taken(id, 'used')
    }
    const pair =
      group.main && !attachments && mayPair(group, said) && isNew(said) ? options.pair?.(spoken) : undefined
    if (pair) {
      // The route for it takes an admin, and words in a chat do no more than a route would.
      if (isOperator(said) && role !== 'admin')
        return refuse(said.channel, said, 'forbidden', 'Only an admin lets chats in, or keeps them out.')
      pair(by)
      return taken(receive({ ...said, status: 'used' }), 'used')
    }
    // Whoever asked for a file is told where it is.
    const words = textWithFiles({ text: spoken, attachments })
    const noting = attachments ? undefined : options.todo?.(group, words)
    // The agent hears of it with whatever calls it next.
    if (noting) return taken(keep({ ...said, status: 'context' }, noting), 'context')
    const isForAgent = mentioned || isCalled(text, group, assistant)
    const answered = answer(group, words, { ...said, status: 'used' }, isForAgent)
    if (answered !== undefined) return taken(answered, 'used')
    const status = isForAgent ? 'waiting' : 'context'
    const id = receive({ ...said, status })
    if (id !== undefined && status === 'waiting') kick()
    return taken(id, status)
  }

  return {
    receive(channel, given) {
      // A name is as long as its bearer likes, and is kept with all that they say.
      const message = { ...given, senderName: given.senderName.slice(0, longestName).toWellFormed() }
      const decided = decide(channel, message)
      if (decided) return decided
      const admitted = admit(channel, message)
      if (!admitted.ok) {
        if (!groupOf(message)) options.unknown?.(channel, message)
        return admitted
      }
      const { group } = admitted
      const text = message.text.toWellFormed()
      const problem = unfit({ ...message, text })
      if (problem) return refuse(channel, message, problem.code, problem.message)
      return hear(group, saidIn(channel, group, message, text), message)
    },
    choose(channel, choice) {
      const admitted = admit(channel, choice)
      if (!admitted.ok) return admitted
      if (!questions) return refused('unavailable', 'Agents cannot ask questions on this host.')
      const chosen = questions.choose(admitted.group, choice)
      return 'code' in chosen ? { ok: false, error: chosen } : { ok: true, question: chosen }
    },
    decide(channel, { jid, id, sender, senderName, ...spoken }) {
      const group = groupOf({ jid })
      if (!group)
        return refuse(channel, { jid, sender }, 'not_found', 'No group is registered for this chat.')
      if (!approvals) return refused('unavailable', 'Nobody is asked here.')
      return approvals.choose(group, id, spoken, { channel, sender, senderName })
    },
    changed(channel, { jid, externalId, sender, senderName, text }) {
      const group = groupOf({ jid })
      const row = group && store.agents.byExternalId(channel, jid, externalId)
      // Nobody changes what somebody else has said.
      if (!group || row?.group !== group.folder || row.sender !== sender || text === row.text) return
      // Whoever is not heard by writing is not heard by changing what they once wrote.
      if (!mayWrite(group, channel, { sender })) return
      const words = text === null ? '[taken back]' : text.toWellFormed().slice(0, longestText)
      if (store.agents.rewrite(row.id, words)) {
        options.received?.({ ...row, text: words })
        return
      }
      const was = JSON.stringify(row.text.slice(0, shownText).toWellFormed())
      note(
        group,
        `changed:${channel}:${externalId}:${digest(words)}`,
        text === null
          ? `${shownName(senderName)} has taken back what they had said: ${was}`
          : `${shownName(senderName)} has changed what they had said, ${was}, to: ${JSON.stringify(words)}`,
      )
    },
    reacted(channel, { jid, to, emoji, sender, senderName }) {
      const group = groupOf({ jid })
      if (!group || !mayWrite(group, channel, { sender })) return
      const { text } = readable(channel, group, { id: to })
      const what = text === undefined ? 'a message' : JSON.stringify(text.slice(0, shownText).toWellFormed())
      note(
        group,
        `reaction:${channel}:${to}:${sender}:${digest(emoji)}`,
        `${shownName(senderName)} reacted with ${shownEmoji(emoji)} to ${what}`,
      )
    },
    admits: (channel, said) => {
      const group = groupOf(said)
      return group !== undefined && mayWrite(group, channel, said)
    },
    note,
    counts: () => ({ ...counts }),
  }
}
