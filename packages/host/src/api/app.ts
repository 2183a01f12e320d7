import { Hono } from 'hono'
import type { ChatContext } from './chat-context.ts'
import type { Host } from './host.ts'
import { answerFailures } from './requests.ts'
import { mount } from './route.ts'
import { chatRoutes, documentRoutes, healthRoutes, hostRoutes, metricsRoutes } from './routes.ts'

/**
 * What people and the console can see and do. The same application answers on the daemon's socket and, while no
 * daemon runs, inside the command that asks: one API, two ways to reach it. Browsers get the same routes, see web-app.ts.
 */
export interface ApiOptions {
  /** ends the event streams */
  signal?: AbortSignal
  heartbeatMs?: number
  eventBufferBytes?: number
  /** the chats, below /api/; only a daemon has them */
  chat?: Pick<ChatContext, 'chats' | 'warning'> &
    Partial<Pick<ChatContext, 'heartbeatMs' | 'eventBufferBytes'>>
  /** told of what should not have happened; left out: standard error */
  report?: (error: Error) => void
}

export function createApi(host: Host, options: ApiOptions = {}): Hono {
  const { heartbeatMs = 15_000, eventBufferBytes = 262_144, report = console.error } = options
  const signal = options.signal ?? new AbortController().signal
  const app = new Hono()
  answerFailures(app, report)

  const context = { host, signal, heartbeatMs, eventBufferBytes }
  mount(app, '', hostRoutes, context)
  mount(app, '', healthRoutes, context)
  for (const { path, routes } of host.routes) mount(app, path, routes, undefined)
  mount(app, '', metricsRoutes, context)
  mount(app, '', documentRoutes, host.routes)
  if (options.chat) {
    const { store, config } = host
    const usual = { heartbeatMs: 15_000, eventBufferBytes: 4_194_304 }
    mount(app, '/api', chatRoutes, { ...usual, ...options.chat, store, config, signal })
  }
  return app
}
