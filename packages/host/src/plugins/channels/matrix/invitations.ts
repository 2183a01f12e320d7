import type { Logger } from 'pino'
import { z } from 'zod'
import { within } from '../../../base/pause.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { type Client, MatrixRefusal } from './client.ts'
import { type Event, jidOf, text } from './events.ts'

/**
 * An invitation is
 *
 *   accepted   its sender is one of `inviters`, the operator has let the chat in, or it is for the room that replaces one
 *              of ours
 *   waiting    anything else: the host is told of it as of a message without words, so that the chat may ask to be let in
 *   gone       withdrawn, or refused by the server
 *
 * A room of strangers is joined by nobody's decision but the operator's, and nothing is said there before.
 */
export interface Invitations {
  take(room: string, state: readonly Event[]): Promise<void>
  gone(room: string): void
  /** false: the operator has not let it in. Joins a room that was let in meanwhile. */
  admits(room: string): Promise<boolean>
  /** all that wait: somebody may have decided while we were away */
  review(): Promise<void>
}

const atMost = 200
/** A room's own server may be down for ever: what is said in other rooms waits no longer than this. */
export const joinMs = 5000
const key = 'invitations'
const storedSchema = z.array(
  z.object({
    ...{ room: z.string(), by: z.string(), name: z.string(), at: z.number() },
    /** nobody has to decide about it */
    isWelcome: z.boolean().default(false),
  }),
)
type Invitation = z.output<typeof storedSchema>[number]

export function createInvitations(options: {
  host: ChannelHost
  client: Client
  us: string
  inviters: readonly string[]
  /** of a room that a room of ours has named */
  isAnnounced(room: string): boolean
  log: Logger
  now(): number
}): Invitations {
  const { host, client, us, inviters, log, now } = options
  const waiting = new Map(
    storedSchema.parse(JSON.parse(host.recall(key) ?? '[]')).map(one => [one.room, one]),
  )
  const save = () =>
    host.remember(key, waiting.size === 0 ? undefined : JSON.stringify([...waiting.values()]))
  const drop = (room: string) => {
    if (waiting.delete(room)) save()
  }

  const join = async (room: string) => {
    try {
      await client.ask(z.unknown(), 'POST', ['v3', 'rooms', room, 'join'], { body: {} })
    } catch (error) {
      if (!(error instanceof MatrixRefusal && error.isFinal)) throw error
      log.warn({ room, reason: error.message }, 'an invitation could not be accepted')
    }
    drop(room)
  }
  /** Whether it was let in. Words that are not there are never stored: the host only says whether it knows the chat. */
  const ask = async ({ room, by, name, at, isWelcome }: Invitation): Promise<boolean> => {
    if (isWelcome) return true
    const said = { jid: jidOf(room), sender: by, senderName: name, text: '', at, mentioned: true }
    const received = await host.receive(said)
    return received.ok || received.error.code !== 'not_found'
  }
  const admits = async (room: string): Promise<boolean> => {
    const invitation = waiting.get(room)
    if (!invitation) return true
    if (!(await ask(invitation))) return false
    await join(room)
    return true
  }

  const accept = async (invitation: Invitation) => {
    const { room } = invitation
    if (!(await ask(invitation))) return
    const joined = join(room).catch(error =>
      log.warn({ room, reason: String(error) }, 'an invitation cannot be accepted yet; it is kept'),
    )
    await within(joinMs, joined)
  }

  return {
    async take(room, state) {
      const ours = state.find(({ type, state_key }) => type === 'm.room.member' && state_key === us)
      if (!ours) return
      const by = ours.sender
      const isInviter = inviters.includes(by) || inviters.includes(`*${by.slice(by.indexOf(':'))}`)
      const isWelcome = isInviter || options.isAnnounced(room)
      const about = (type: string, of: string) =>
        state.find(one => one.type === type && one.state_key === of)?.content
      const name = text(about('m.room.member', by)?.displayname)?.trim() || by
      if (!isWelcome)
        host.knows({
          jid: jidOf(room),
          name: text(about('m.room.name', '')?.name)?.trim() || name,
          isGroup: ours.content.is_direct !== true,
        })
      const [oldest] = waiting.keys()
      if (waiting.size >= atMost && oldest !== undefined) waiting.delete(oldest)
      const invitation = { room, by, name, at: now(), isWelcome }
      waiting.set(room, invitation)
      save()
      await accept(invitation)
    },
    gone: drop,
    admits,
    async review() {
      await Promise.all([...waiting.values()].map(accept))
    },
  }
}
