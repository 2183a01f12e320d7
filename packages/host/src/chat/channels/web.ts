import { refusal } from '@hatchway/protocol'
import type { Settled } from '../approvals/types.ts'
import type { Feed } from '../feed.ts'
import type { Channel, ChannelHost, Choice, Chosen, Incoming, Received, Ruling } from './types.ts'

/** The person at this machine: in a browser that holds the token, or at a terminal that may enter the state directory. */
const operator = { sender: 'operator', senderName: 'Operator' }

/** Several people may be let in: each is the operator, under a name of their own. */
interface Named {
  senderName?: string | undefined
}

/** What is posted; left out, `role` is none that lets anybody in. */
type Posted = Pick<Incoming, 'jid' | 'text' | 'attachments' | 'role'> & Named

export interface WebChannel extends Channel {
  /** `id` is the writer's own: a message that is posted again under it is not taken twice */
  post(message: Posted & { id?: string | undefined }): Promise<Received>
  /** answers one question of a card */
  choose(choice: Omit<Choice, 'sender' | 'senderName'> & Named): Promise<Chosen>
  /** decides what a card asks about */
  decide(ruling: Omit<Ruling, 'sender' | 'senderName'> & Named): Promise<Settled>
  /** chats in which somebody is writing */
  typingIn(): readonly string[]
}

const named = ({ senderName = operator.senderName }: Named) => ({ ...operator, senderName })

const notReady = {
  ok: false,
  error: refusal('unavailable', 'The host is not ready for messages yet.'),
} as const

const prefixes = ['web:', 'local:']

/**
 * The chat in the browser and in the terminal. What is said in it is delivered by being stored: whoever looks is told by
 * the feed once the outbox has noted it, and whoever looks later reads it there. Unlike other channels' chats, which
 * are shown too, it has no other place.
 */
export function createWebChannel(options: { feed: Feed; now(): number }): WebChannel {
  const { feed, now } = options
  const typing = new Set<string>()
  let host: ChannelHost | undefined

  return {
    name: 'web',
    messageLimit: Number.POSITIVE_INFINITY,
    showsSender: true,
    showsCards: true,
    reaches: jid => prefixes.some(prefix => jid.startsWith(prefix)),
    async connect(given) {
      host = given
    },
    async send() {},
    typing(jid, on) {
      if (on === typing.has(jid)) return
      if (on) typing.add(jid)
      else typing.delete(jid)
      feed.publish(() => ({ kind: 'typing', jid, on }))
    },
    async disconnect() {
      host = undefined
    },
    async post({ id, ...said }) {
      if (!host) return notReady
      return host.receive({ ...said, at: now(), ...named(said), ...(id !== undefined && { externalId: id }) })
    },
    async choose(choice) {
      if (!host) return notReady
      return host.choose({ ...choice, ...named(choice) })
    },
    async decide(ruling) {
      if (!host) return notReady
      return host.decide({ ...ruling, ...named(ruling) })
    },
    typingIn: () => [...typing],
  }
}
