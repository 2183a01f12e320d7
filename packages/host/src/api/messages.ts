import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { message, messagesAnswer } from './answers.ts'
import type { HostContext } from './host.ts'
import { largestPage, page, present, whole } from './requests.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('messages')

const messagesQuery = z.object({
  group: folderSchema.optional(),
  status: z.enum(['pending', 'sent', 'failed']).optional(),
  last: whole(1, largestPage).optional(),
  ...page,
})

/** Not more than this is in one answer: a message may hold a megabyte. */
const mostCharacters = 8_000_000

/** What agents said, and whether it was delivered. */
export const messageRoutes: readonly Route<HostContext>[] = [
  route.get('/messages', {
    summary:
      'What agents said, oldest first, and whether it was delivered; fewer than asked for where they are long: the rest comes `after` the last of them, and of the `last` the older are left out',
    role: 'viewer',
    query: messagesQuery,
    answer: messagesAnswer,
    handle({ host }, { query: { group, status, after, limit = largestPage, last } }) {
      const filter = present({ group, status })
      const rows =
        last === undefined
          ? host.store.messages({ ...filter, ...present({ after }), limit, characters: mostCharacters })
          : host.store.latestMessages({ ...filter, limit: last, characters: mostCharacters }).rows
      return rows.map(message.of)
    },
  }),
]
