import type { Logger } from 'pino'
import type { ChannelHost, KnownChat } from '../../../chat/channels/types.ts'
import { jidOf } from './ids.ts'
import type { GroupMetadata, Socket } from './library.ts'

/** Who is in the groups of the account. Asking WhatsApp anew for each message would soon be refused. */
export interface Groups {
  of(address: string): Promise<GroupMetadata>
  /** asks WhatsApp where it is not known yet */
  nameOf(address: string): Promise<string>
  /** asks for all of them, and tells the host */
  list(): Promise<readonly KnownChat[]>
  follow(socket: Socket): void
}

export function createGroups(options: { host(): ChannelHost | undefined; log: Logger }): Groups {
  const known = new Map<string, GroupMetadata>()
  const names = new Map<string, string>()
  let socket: Socket | undefined

  const current = () => {
    if (!socket) throw new Error('WhatsApp is not connected.')
    return socket
  }

  const chatOf = (address: string): KnownChat => ({
    jid: jidOf(address),
    name: names.get(address) ?? address,
    isGroup: true,
  })
  const name = (address: string, subject: string) => {
    names.set(address, subject)
    options.host()?.knows(chatOf(address))
  }
  const keep = (group: GroupMetadata) => {
    known.set(group.id, group)
    name(group.id, group.subject)
  }

  const find = async (address: string) => {
    const found = known.get(address)
    if (found) return found
    const group = await current().groupMetadata(address)
    keep(group)
    return group
  }

  return {
    of: find,
    async nameOf(address) {
      if (!names.has(address))
        await find(address).catch(error =>
          options.log.debug({ address, reason: String(error) }, 'a group could not be looked up'),
        )
      return names.get(address) ?? address
    },
    async list() {
      const groups = await current().groupFetchAllParticipating()
      known.clear()
      for (const group of Object.values(groups)) keep(group)
      return Object.keys(groups).map(chatOf)
    },
    follow(next) {
      socket = next
      const { ev } = next
      ev.on('groups.update', updates => {
        for (const { id, subject, participants } of updates) {
          // One that says who is in it comes from the list itself.
          if (id === undefined || participants) continue
          known.delete(id)
          if (subject !== undefined) name(id, subject)
        }
      })
      ev.on('group-participants.update', ({ id }) => void known.delete(id))
      ev.on('groups.upsert', groups => {
        for (const group of groups) keep(group)
      })
    },
  }
}
