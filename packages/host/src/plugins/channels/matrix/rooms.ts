import { z } from 'zod'
import type { KnownChat } from '../../../chat/channels/types.ts'
import type { Client } from './client.ts'
import type { Crypto } from './crypto.ts'
import { type Event, eventsIn, jidOf, text } from './events.ts'

/** A room we are in. */
export interface Room {
  id: string
  chat: KnownChat
  isEncrypted: boolean
  /** everybody who is there or invited */
  users: readonly string[]
  nameOf(user: string): string
}

/** What is known of rooms: asked for once, and kept up to date by what a sync brings. */
export interface Rooms {
  get(id: string): Promise<Room>
  /** something in it has changed */
  apply(id: string, event: Event): Promise<void>
  forget(id: string): void
}

interface State {
  name: string | undefined
  alias: string | undefined
  members: Map<string, string>
}

export function createRooms(options: { client: Client; crypto: Crypto; us: string }): Rooms {
  const { client, crypto, us } = options
  const states = new Map<string, Promise<State>>()

  const change = async (id: string, state: State, { type, state_key, content }: Event) => {
    if (type === 'm.room.name') state.name = text(content.name)?.trim() || undefined
    if (type === 'm.room.canonical_alias') state.alias = text(content.alias)
    if (type === 'm.room.encryption') await crypto.setEncrypted(id)
    if (type !== 'm.room.member' || state_key === undefined) return
    const isThere = content.membership === 'join' || content.membership === 'invite'
    if (isThere) state.members.set(state_key, text(content.displayname)?.trim() || state_key)
    else state.members.delete(state_key)
  }
  const load = async (id: string): Promise<State> => {
    const state: State = { name: undefined, alias: undefined, members: new Map() }
    const all = await client.ask(z.array(z.unknown()), 'GET', ['v3', 'rooms', id, 'state'])
    for (const { event } of eventsIn(all)) await change(id, state, event)
    return state
  }
  const stateOf = (id: string): Promise<State> => {
    const known = states.get(id)
    if (known) return known
    const loading = load(id)
    states.set(id, loading)
    loading.catch(() => states.delete(id))
    return loading
  }

  return {
    async get(id) {
      const { name, alias, members } = await stateOf(id)
      const others = [...members].filter(([user]) => user !== us)
      const names = others.slice(0, 3).map(([, shown]) => shown)
      return {
        id,
        chat: { jid: jidOf(id), name: name ?? alias ?? (names.join(', ') || id), isGroup: others.length > 1 },
        isEncrypted: await crypto.isEncrypted(id),
        users: [...members.keys()],
        nameOf: user => members.get(user) ?? user,
      }
    },
    async apply(id, event) {
      // One that is not known yet is asked for whole.
      const known = states.get(id)
      if (known && event.state_key !== undefined) await change(id, await known, event)
    },
    forget: id => void states.delete(id),
  }
}
