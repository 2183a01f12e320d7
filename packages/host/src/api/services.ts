import { request, requestsAnswer, servicesAnswer } from './answers.ts'
import type { Host, HostContext } from './host.ts'
import { type Route, routesOf, unavailable } from './route.ts'

const route = routesOf<HostContext>('services')

function servicesOf(host: Host) {
  const known = host.services()
  if (!known) throw unavailable('Only a running daemon has services. Start one.')
  return known
}

/** What agents can ask for, and what they wait for. */
export const serviceRoutes: readonly Route<HostContext>[] = [
  route.get('/services', {
    summary: 'What agents can ask for, and whether it can be used',
    role: 'viewer',
    answer: servicesAnswer,
    handle: ({ host }) =>
      servicesOf(host)
        .catalogue.services()
        .map(({ name, ok, text, tools }) => ({
          name,
          ok,
          text,
          tools: tools.map(tool => ({
            name: tool.name,
            title: tool.title,
            description: tool.description,
            groups: tool.groups,
            labels: tool.labels,
            timeout_ms: tool.kind === 'later' ? tool.timeoutMs : null,
            repeatable: tool.kind === 'later' && tool.repeatable,
          })),
        })),
  }),
  route.get('/requests', {
    summary: 'What agents wait for',
    role: 'viewer',
    answer: requestsAnswer,
    handle: ({ host }) =>
      servicesOf(host)
        .requestQueue.open()
        .map(row => ({ ...request.of(row), id: row.reply?.id ?? null })),
  }),
]
