import type { Logger } from 'pino'
import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { type Client, MatrixRefusal } from './client.ts'
import { type Crypto, cryptoSyncSchema } from './crypto.ts'
import { type Event, eventsIn } from './events.ts'
import type { Invitations } from './invitations.ts'
import type { ReplacedRooms } from './replaced.ts'
import type { Rooms } from './rooms.ts'
import type { Unread } from './unread.ts'
import type { Updates } from './updates.ts'

const listSchema = z.object({ events: z.array(z.unknown()).default([]) })
const joinedSchema = z.object({
  state: listSchema.optional(),
  timeline: listSchema
    .extend({ limited: z.boolean().default(false), prev_batch: z.string().optional() })
    .optional(),
})
type Joined = z.output<typeof joinedSchema>
const syncSchema = cryptoSyncSchema.extend({
  next_batch: z.string(),
  rooms: z
    .object({
      join: z.record(z.string(), joinedSchema).default({}),
      invite: z.record(z.string(), z.object({ invite_state: listSchema.optional() })).default({}),
      leave: z.record(z.string(), z.unknown()).default({}),
    })
    .optional(),
})
const messagesSchema = z.object({ chunk: z.array(z.unknown()), end: z.string().optional() })

/** how long the server holds a request back while there is nothing new */
const holdMs = 30_000
/** of one room, while nobody was there */
const mostMissed = 20_000
const states = [
  'm.room.name',
  'm.room.canonical_alias',
  'm.room.encryption',
  'm.room.member',
  'm.room.tombstone',
]
const timeline = [
  'm.room.message',
  'm.room.encrypted',
  'm.sticker',
  'm.reaction',
  'm.room.redaction',
  ...states,
]
const none = { types: [] }
const filterOf = (limit: number) =>
  JSON.stringify({
    presence: none,
    account_data: none,
    room: {
      timeline: { types: timeline, limit },
      state: { types: states },
      ephemeral: none,
      account_data: none,
    },
  })

export interface SyncOptions {
  client: Client
  crypto: Crypto
  rooms: Rooms
  invitations: Invitations
  updates: Updates
  unread: Unread
  replaced: ReplacedRooms
  host: ChannelHost
  us: string
  log: Logger
}

/**
 * Takes what the server has, again and again. How far was read is noted once all of a batch is stored: its messages by the
 * host, its keys by `crypto`. So a process that is killed gets the batch once more.
 */
export async function receive(
  options: SyncOptions,
  signal: AbortSignal,
  connected: () => void,
): Promise<void> {
  const { client, crypto, invitations, updates, unread, host, us } = options
  const place = `since:${us}`
  const takeRoom = createTaker(options)
  let isFirst = true
  await invitations.review()
  while (!signal.aborted) {
    const since = host.recall(place)
    const query = {
      filter: filterOf(since === undefined ? 1 : 50),
      // The first is not held back: it shows whether we are let in.
      timeout: String(isFirst ? 0 : holdMs),
      ...(since !== undefined && { since }),
    }
    const sync = await client.ask(syncSchema, 'GET', ['v3', 'sync'], { query, signal })
    await crypto.receive(sync)
    const { join = {}, invite = {}, leave = {} } = sync.rooms ?? {}
    for (const room of Object.keys(leave)) {
      invitations.gone(room)
      options.rooms.forget(room)
    }
    await Promise.all(
      Object.entries(invite).map(([room, { invite_state }]) =>
        invitations.take(
          room,
          eventsIn(invite_state?.events).map(({ event }) => event),
        ),
      ),
    )
    await Promise.all(Object.entries(join).map(([room, joined]) => takeRoom(room, joined, since)))
    const hasKeys = (sync.to_device?.events.length ?? 0) + (sync.device_lists?.changed.length ?? 0) > 0
    if (hasKeys || isFirst) await unread.retry(updates.take)
    await crypto.save()
    host.remember(place, sync.next_batch)
    if (isFirst) connected()
    isFirst = false
  }
}

type Given = ReturnType<typeof eventsIn>[number]

function createTaker({ client, crypto, rooms, updates, replaced, host, us, log }: SyncOptions) {
  /** What came between the last batch and this one, where that was too much for it; oldest first. */
  const missed = async (id: string, from: string, until: { to?: string; isEnough(one: Given): boolean }) => {
    const found: Given[] = []
    let next: string | undefined = from
    while (next !== undefined && found.length < mostMissed) {
      const query: Record<string, string> = {
        dir: 'b',
        from: next,
        limit: '200',
        filter: JSON.stringify({ types: timeline }),
        ...(until.to !== undefined && { to: until.to }),
      }
      const { chunk, end } = await client.ask(messagesSchema, 'GET', ['v3', 'rooms', id, 'messages'], {
        query,
      })
      const events = eventsIn(chunk)
      found.push(...events)
      if (events.some(until.isEnough)) break
      next = end
    }
    if (found.length >= mostMissed) log.warn({ room: id }, 'more was said than can be caught up with')
    return found.toReversed()
  }
  const isUs = ({ type, state_key }: Event) => type === 'm.room.member' && state_key === us
  const isInvitation = ({ event }: Given) => isUs(event) && event.content.membership === 'invite'
  const isArrival = ({ event }: Given) =>
    isUs(event) && event.content.membership === 'join' && event.unsigned?.prev_content?.membership !== 'join'

  const hasArrived = ({ state, timeline: part }: Joined) =>
    [...eventsIn(state?.events), ...eventsIn(part?.events)].some(isArrival)

  /** All that was said for us to hear: since the last batch, or, in a room that is new to us, since we were invited. */
  const saidIn = async (id: string, joined: Joined, since: string): Promise<Given[]> => {
    const part = joined.timeline
    const shown = eventsIn(part?.events)
    const before = part?.limited && part.prev_batch !== undefined ? part.prev_batch : undefined
    if (!hasArrived(joined)) {
      const gap = before === undefined ? [] : await missed(id, before, { to: since, isEnough: () => false })
      return [...gap, ...shown]
    }
    const gap =
      before === undefined || shown.some(isInvitation)
        ? []
        : await missed(id, before, { isEnough: isInvitation })
    const all = [...gap, ...shown]
    const at = all.findLastIndex(isInvitation)
    return all.slice((at < 0 ? all.findLastIndex(isArrival) : at) + 1)
  }

  return async (id: string, joined: Joined, since: string | undefined): Promise<void> => {
    try {
      for (const { event } of eventsIn(joined.state?.events)) await rooms.apply(id, event)
      // What was said before we were set up is not for us.
      if (since === undefined) return
      const said = await saidIn(id, joined, since)
      for (const { event } of said) await rooms.apply(id, event)
      if (hasArrived(joined)) await replaced.arrived(id)
      const room = await rooms.get(id)
      host.knows(room.chat)
      if (room.isEncrypted) await crypto.track(room.users)
      for (const { event, raw } of said) await updates.take(id, event, raw)
    } catch (error) {
      // We may be in the room no longer. Other rooms must not wait for it.
      if (!(error instanceof MatrixRefusal && error.isFinal)) throw error
      log.warn({ room: id, reason: error.message }, 'what was said in a room cannot be fetched')
    }
  }
}
