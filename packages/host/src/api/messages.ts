import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import type { Host } from '../types.ts'
import { messageOf, messagesAnswer } from './answers.ts'
import { type HostContext, hostRoute as route } from './host-context.ts'
import { largestPage, page, present, whole } from './requests.ts'
import type { Route } from './route.ts'

const messagesQuery = z.object({
  group: folderSchema.optional(),
  status: z.enum(['pending', 'sent', 'failed']).optional(),
  last: whole(1, largestPage).optional(),
  ...page,
})

/** What agents said, and whether it was delivered. */
export const messageRoutes: readonly Route<HostContext>[] = [
  route({
    method: 'get',
    path: '/messages',
    summary: 'What agents said, oldest first, and whether it was delivered',
    tag: 'messages',
    role: 'viewer',
    query: messagesQuery,
    answer: messagesAnswer,
    handle({ host }, { query: { group, status, after, limit = largestPage, last } }) {
      const filter = present({ group, status })
      const rows =
        last === undefined
          ? host.store.messages({ ...filter, ...present({ after }), limit })
          : newest(host, filter, last)
      return rows.map(messageOf)
    },
  }),
]

/** The last ones, oldest first. Ids rise, so the end of the table is looked through in growing steps. */
function newest(
  host: Host,
  filter: { group?: string; status?: 'pending' | 'sent' | 'failed' },
  count: number,
) {
  const end = host.store.lastMessageId()
  for (let span = count * 4; ; span *= 4) {
    const rows = host.store.messages({ ...filter, after: Math.max(0, end - span) })
    if (rows.length >= count || span >= end) return rows.slice(-count)
  }
}
