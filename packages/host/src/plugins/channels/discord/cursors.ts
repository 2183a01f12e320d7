import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'

/**
 * How far each channel and thread was read: a new session asks for what came after. Only those have a cursor in which
 * somebody was heard. Ids of messages grow with time, so one of another channel is a point in time, too.
 */
export interface Cursors {
  of(channel: string): string | undefined
  /** the channels of a server; of none: chats with one person */
  in(guild: string | undefined): string[]
  /** this message, and all before it, need not be read again; a new cursor begins here */
  advance(channel: string, guild: string | undefined, message: string): void
  forget(channel: string): void
}

type Memory = Pick<ChannelHost, 'recall' | 'remember'>
const listKey = 'channels'
const keyOf = (channel: string) => `after:${channel}`
/** by channel: its server; none: '' */
const listSchema = z.record(z.string(), z.string())

export function createCursors(memory: Memory): Cursors {
  const guilds = new Map(Object.entries(listSchema.parse(JSON.parse(memory.recall(listKey) ?? '{}'))))
  const last = new Map<string, string>()
  for (const channel of guilds.keys()) {
    const message = memory.recall(keyOf(channel))
    if (message !== undefined) last.set(channel, message)
  }
  const saveList = () => memory.remember(listKey, JSON.stringify(Object.fromEntries(guilds)))

  return {
    of: channel => last.get(channel),
    in: (guild = '') => [...last.keys()].filter(channel => guilds.get(channel) === guild),
    advance(channel, guild = '', message) {
      const before = last.get(channel)
      if (before !== undefined && BigInt(message) <= BigInt(before)) return
      memory.remember(keyOf(channel), message)
      last.set(channel, message)
      if (guilds.has(channel)) return
      guilds.set(channel, guild)
      saveList()
    },
    forget(channel) {
      if (!guilds.delete(channel)) return
      last.delete(channel)
      memory.remember(keyOf(channel), undefined)
      saveList()
    },
  }
}
