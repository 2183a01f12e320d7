import type { Group } from '@hatchway/protocol'
import type { NewMessage } from './types.ts'

/** What a group's agent says in the group's own chat. */
export const textMessage = (
  id: number,
  { folder, jid }: Pick<Group, 'folder' | 'jid'>,
  text: string,
  createdAt: number,
): NewMessage => ({
  id,
  group: folder,
  jid,
  author: 'agent',
  kind: 'text',
  text,
  sender: null,
  speech: null,
  messageId: null,
  createdAt,
})

/** What the host itself says there: the group's agent is not told it as words of its own. */
export const hostMessage = (...given: Parameters<typeof textMessage>): NewMessage => ({
  ...textMessage(...given),
  author: 'host',
})
