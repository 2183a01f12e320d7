import { z } from 'zod'
import type { ChannelHost, KnownChat } from '../../../chat/channels/types.ts'
import type { ChannelOptions } from '../kind.ts'
import { createClient } from './client.ts'
import { type CryptoLibrary, openCrypto } from './crypto.ts'
import { createDelivery, type Delivery } from './delivery.ts'
import { type IndexedDb, offer } from './indexed-db.ts'
import { createInvitations } from './invitations.ts'
import { type KeyStore, openKeyStore } from './key-store.ts'
import { createReplacedRooms } from './replaced.ts'
import { createRooms } from './rooms.ts'
import { beginSession, endSession } from './session.ts'
import type { MatrixSettings } from './settings.ts'
import { receive } from './sync.ts'
import { createUnread } from './unread.ts'
import { createUpdates } from './updates.ts'

/** A session on the homeserver, with its keys: it lasts through lost connections. */
export interface Link {
  /** until the connection or the session ends */
  receive(signal: AbortSignal, connected: () => void): Promise<void>
  delivery: Delivery
  chats(): Promise<readonly KnownChat[]>
  /** 0: no longer */
  typing(room: string, ms: number): Promise<void>
  /** the server has ended the session; softly: its keys are used again */
  end(isSoft: boolean): Promise<void>
  close(): Promise<void>
}

export interface LinkOptions extends ChannelOptions<MatrixSettings> {
  host: ChannelHost
  /** aborted: nothing more is asked */
  closing: AbortSignal
  limited(ms: number): void
  report(problem: string): void
}

/** Both are CommonJS, of which Node may have all exports in one; `known` is one of them. */
async function load<T extends object>({ library }: LinkOptions, name: string, known: keyof T): Promise<T> {
  const module = await library<T & { default: T }>(name)
  return known in module ? module : module.default
}

export async function openLink(options: LinkOptions): Promise<Link> {
  const idb = await load<IndexedDb>(options, 'fake-indexeddb', 'IDBObjectStore')
  offer(idb)
  const keys = openKeyStore(options.folder(), idb)
  try {
    return await linkWith(keys, options)
  } catch (error) {
    await keys.close()
    throw error
  }
}

async function linkWith(keys: KeyStore, options: LinkOptions): Promise<Link> {
  const { settings, host, log, now, closing } = options
  const session = await beginSession(keys, settings, closing)
  const { server, token, user: us } = session
  const client = createClient({
    server,
    token,
    secrets: [settings.password, settings.token],
    signal: closing,
  })
  const library = await load<CryptoLibrary>(options, '@matrix-org/matrix-sdk-crypto-wasm', 'OlmMachine')
  const crypto = await openCrypto({ library, keys, session, client, settings })
  const rooms = createRooms({ client, crypto, us })
  const replaced = createReplacedRooms({ host, client, log })
  const { isAnnounced } = replaced
  const { inviters } = settings
  const invitations = createInvitations({ host, client, us, inviters, isAnnounced, log, now })
  const unread = createUnread({ memory: host, report: options.report, log, now })
  const updates = createUpdates({ host, client, crypto, rooms, replaced, us, unreadable: unread.add, log })
  const { readFile, limited } = options
  const { admits } = invitations
  const nowOf = replaced.now
  const delivery = createDelivery({ client, crypto, rooms, memory: host, nowOf, admits, readFile, limited })
  let isStarted = false

  const close = async () => {
    try {
      await crypto.close()
    } finally {
      await keys.close()
    }
  }

  return {
    delivery,
    async receive(signal, connected) {
      const problem = isStarted ? undefined : await crypto.start()
      isStarted = true
      if (problem !== undefined) log.warn(problem)
      await receive(
        { client, crypto, rooms, invitations, updates, unread, replaced, host, us, log },
        signal,
        () => {
          connected()
          if (problem !== undefined) options.report(problem)
        },
      )
    },
    async chats() {
      const schema = z.object({ joined_rooms: z.array(z.string()) })
      const { joined_rooms } = await client.ask(schema, 'GET', ['v3', 'joined_rooms'])
      const known: KnownChat[] = []
      for (const room of joined_rooms) known.push((await rooms.get(room)).chat)
      return known
    },
    async typing(room, ms) {
      const body = ms === 0 ? { typing: false } : { typing: true, timeout: ms }
      await client.ask(z.unknown(), 'PUT', ['v3', 'rooms', room, 'typing', us], { body })
    },
    async end(isSoft) {
      endSession(keys, session, isSoft)
      await close()
    },
    close,
  }
}
