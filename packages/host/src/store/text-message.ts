import type { Group } from '@hatchway/protocol'
import type { NewMessage } from './types.ts'

/** What the host or a group's agent says in the group's own chat. */
export const textMessage = (
  id: number,
  { folder, jid }: Pick<Group, 'folder' | 'jid'>,
  text: string,
  createdAt: number,
): NewMessage => ({
  id,
  group: folder,
  jid,
  kind: 'text',
  text,
  sender: null,
  speech: null,
  messageId: null,
  createdAt,
})
