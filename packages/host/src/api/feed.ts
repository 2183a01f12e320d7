import { z } from 'zod'
import { feedEventAnswer } from './answers.ts'
import type { HostContext } from './host.ts'
import { feedOf } from './host-feed.ts'
import { sentEvents } from './live-stream.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('host')

export const feedRoutes: readonly Route<HostContext>[] = [
  route.get('/feed', {
    summary: 'What the host does, as server-sent events; `Last-Event-ID` or `after` goes on',
    role: 'viewer',
    query: z.object({ after: z.string().max(64).optional() }),
    answer: feedEventAnswer,
    gives: 'text/event-stream',
    isStream: true,
    handle: ({ host, ...limits }, { query: { after }, request, caller }) =>
      sentEvents(
        request,
        caller,
        { ...limits, after },
        {
          log: feedOf(host),
          hello: complete => ({ kind: 'hello', complete }),
          dataOf: text => text(),
        },
      ),
  }),
]
