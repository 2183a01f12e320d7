import { type Group, refusal } from '@hatchway/protocol'
import type { Chats } from '../chat/chats.ts'
import type { Config } from '../config.ts'
import type { Store } from '../store/types.ts'
import { ApiError } from './failure.ts'
import { notFound } from './route.ts'

/** What the chats' routes need to be answered. */
export interface ChatContext {
  chats: Pick<Chats, 'approvals' | 'channelOf' | 'feed' | 'files' | 'liveTexts' | 'web'>
  store: Store
  config: Pick<Config, 'agents' | 'groups'>
  /** stays on screen: the sandbox isolates nothing, for one */
  warning?: (() => string | undefined) | undefined
  signal: AbortSignal
  heartbeatMs: number
  /** what a reader may be behind before it is sent away, to come back for what it missed */
  eventBufferBytes: number
}

export function groupOf({ store }: ChatContext, jid: string): Group {
  const group = store.groups().find(candidate => candidate.jid === jid)
  if (!group) throw notFound('No group is registered for this chat.')
  return group
}

export const nameOfChannel = ({ chats }: ChatContext, jid: string) => chats.channelOf(jid)?.name ?? 'none'

/** Where no other channel delivers, this is the only place to write. */
export const isWritable = (context: ChatContext, jid: string) =>
  ['web', 'log', 'none'].includes(nameOfChannel(context, jid))

export function writableChat(context: ChatContext, jid: string): Group {
  const group = groupOf(context, jid)
  if (isWritable(context, jid)) return group
  const where = nameOfChannel(context, jid)
  throw new ApiError(refusal('forbidden', `This chat is one of the channel ${where}: write there.`))
}
