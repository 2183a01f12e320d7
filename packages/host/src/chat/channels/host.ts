import type { Group } from '@hatchway/protocol'
import { refused } from '../../base/outcome.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { titleContext } from '../../store/contexts.ts'
import type { Store } from '../../store/types.ts'
import type { Attachments } from '../attachments/attachments.ts'
import type { Inbound } from '../inbound.ts'
import type { Channel, ChannelHost, Incoming, KnownChat } from './types.ts'

/** That somebody has said something is noted again after this. */
const seenAgainMs = 60_000
const longestName = 200
const outsiders = { corrupted: true, secret: false } as const

export interface ChannelHostOptions {
  store: Store
  inbound: Inbound
  files: Attachments | undefined
  /** a group has another name or another chat, or there is a chat that was not known */
  groupsChanged(): void
  /** whether everybody in the group's chat is heard */
  isOpenToAll(group: Group): boolean
  /** whether words of the group may be shown to others than the people of its chat */
  mayShowElsewhere(group: Group): boolean
  now(): number
}

/** The host, as one channel may use it. */
export function hostFor(channel: Channel, options: ChannelHostOptions): ChannelHost {
  const { store, inbound, files, now } = options
  const { name } = channel
  const groupOf = (jid: string) => store.groups().find(group => group.jid === jid)

  /**
   * A group that has the name its chat had goes on having it; one that somebody named keeps that name. Its agent is told
   * the name, so it must be from people whom the agent hears; other groups' agents do not see it unless they ask.
   */
  const rename = (chat: KnownChat, before: string | undefined) => {
    const group = groupOf(chat.jid)
    if (!group || before === undefined || group.name !== before || before === chat.name) return
    if (!options.isOpenToAll(group)) return
    store.transaction(transaction => {
      transaction.updateGroup({ ...group, name: chat.name })
      transaction.addTaint(group.folder, titleContext, outsiders, 'the name of its chat', now())
    })
  }

  /** Of a chat that is no group's, too: what is said there is refused, and whoever lists chats sees that it is in use. */
  const spoken = ({ jid, at }: Pick<Incoming, 'jid' | 'at'>) => {
    const known = store.chats.known(jid)
    const lastActivity = Number.isSafeInteger(at) ? Math.min(at, now()) : now()
    if (known && lastActivity - known.lastActivity >= seenAgainMs)
      store.chats.know({ ...known, lastActivity })
  }

  return {
    async receive(message) {
      spoken(message)
      return inbound.receive(name, message)
    },
    choose: async choice => inbound.choose(name, choice),
    decide: async ruling => inbound.decide(name, ruling),
    changed: async change => inbound.changed(name, change),
    reacted: async reaction => inbound.reacted(name, reaction),
    knows(given) {
      const before = store.chats.known(given.jid)
      const activeBefore = before?.lastActivity ?? 0
      const lastActivity = Math.max(activeBefore, Math.min(given.lastActivity ?? 0, now()))
      const chat = { ...given, name: given.name.toWellFormed().slice(0, longestName), lastActivity }
      const wasActive = lastActivity - activeBefore >= seenAgainMs
      if (before?.name === chat.name && before.isGroup === chat.isGroup && !wasActive) return
      store.chats.know({ ...chat, channel: name })
      if (wasActive) store.transaction(transaction => transaction.noteActivity(chat.jid, lastActivity))
      rename(chat, before?.name)
      if (before?.name !== chat.name || wasActive) options.groupsChanged()
    },
    async moved(from, to) {
      const group = groupOf(from)
      const known = store.chats.known(from)
      if (known) {
        store.chats.know({ ...known, jid: to })
        store.chats.forget(from)
      }
      if (!group || groupOf(to)) return
      store.transaction(transaction => {
        transaction.updateGroup({ ...group, jid: to })
        for (const task of transaction.openTasks(group.folder))
          if (task.jid === from) transaction.updateTask({ ...task, jid: to })
      })
      options.groupsChanged()
    },
    async takeFile({ jid, sender }, { name: fileName, content }) {
      const group = groupOf(jid)
      if (!group || !inbound.admits(name, { jid, sender }))
        return refused('forbidden', 'Files are taken only from people who are heard in the chat.')
      if (!files) return refused('unavailable', 'This host takes no files.')
      try {
        const { id } = await files.receive(group, fileName, content)
        const { attachments } = await files.give(group, [id])
        const [attachment] = attachments
        return attachment ? { ok: true, attachment } : refused('not_found', 'The file is not kept.')
      } catch (error) {
        if (error instanceof ServiceRefusal) return refused(error.code, error.message)
        throw error
      }
    },
    mayShowElsewhere(jid) {
      const group = groupOf(jid)
      return group !== undefined && options.mayShowElsewhere(group)
    },
    recall: key => store.chats.recall(name, key),
    remember: (key, value) => store.chats.remember(name, key, value),
  }
}
