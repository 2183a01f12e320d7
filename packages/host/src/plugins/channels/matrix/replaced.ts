import type { Logger } from 'pino'
import { z } from 'zod'
import { within } from '../../../base/pause.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import { type Client, MatrixRefusal } from './client.ts'
import { type Event, fields, jidOf, text } from './events.ts'
import { joinMs } from './invitations.ts'

/**
 * Rooms that were replaced by another, as an upgrade of a room does. The old room names the new one, and the new one the
 * old: only where both agree does the group go along. We may be invited to the new room before or after we are told of it.
 */
export interface ReplacedRooms {
  /** the room says that it was replaced */
  announced(room: string, event: Event): Promise<void>
  /** a room that we are in said so: an invitation to it needs nobody's consent */
  isAnnounced(room: string): boolean
  /** we have come into a room */
  arrived(room: string): Promise<void>
  /** where what is meant for a room goes now */
  now(room: string): string
}

export function createReplacedRooms(options: {
  host: ChannelHost
  client: Client
  log: Logger
}): ReplacedRooms {
  const { host, client, log } = options

  const stateOf = async (room: string, type: string) => {
    try {
      return fields(await client.ask(z.unknown(), 'GET', ['v3', 'rooms', room, 'state', type]))
    } catch (error) {
      if (error instanceof MatrixRefusal && error.isFinal) return {}
      throw error
    }
  }

  return {
    async announced(room, { content }) {
      const next = text(content.replacement_room)
      if (next === undefined) return
      host.remember(`replaces:${next}`, room)
      const joined = client
        .ask(z.unknown(), 'POST', ['v3', 'join', next], { body: {} })
        .catch(error =>
          log.info(
            { room, reason: String(error) },
            'a room was replaced by another, which waits for an invitation',
          ),
        )
      await within(joinMs, joined)
    },
    isAnnounced: room => host.recall(`replaces:${room}`) !== undefined,
    async arrived(room) {
      const before = text(fields((await stateOf(room, 'm.room.create')).predecessor).room_id)
      if (before === undefined || host.recall(`moved:${before}`) === room) return
      if ((await stateOf(before, 'm.room.tombstone')).replacement_room !== room) return
      host.remember(`moved:${before}`, room)
      await host.moved(jidOf(before), jidOf(room))
    },
    now: room => host.recall(`moved:${room}`) ?? room,
  }
}
