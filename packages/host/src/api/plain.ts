import { z } from 'zod'
import { type ModelUsage, prometheusText } from '../base/metrics/prometheus.ts'
import { version } from '../base/version.ts'
import { costOf } from '../config/usage.ts'
import type { Host, HostContext } from './host.ts'
import { type Route, routesOf } from './route.ts'
import { waitingIn } from './status.ts'

const route = routesOf<HostContext>('operations')

/** For programs that look after the host. They say whether, and nothing else. */
export const healthRoutes: readonly Route<HostContext>[] = [
  route.get('/healthz', {
    summary: 'Whether the process answers',
    role: 'anyone',
    answer: z.literal('ok'),
    gives: 'text/plain',
    handle: (_, { request }) => request.text('ok'),
  }),
  route.get('/readyz', {
    summary: 'Whether files are being taken; 503 if not',
    role: 'anyone',
    answer: z.literal('ok'),
    gives: 'text/plain',
    handle: ({ host }, { request }) => (host.isReady() ? request.text('ok') : request.text('not', 503)),
  }),
]

/** On the daemon's socket always; to others where the configuration says so. */
export const metricsRoutes: readonly Route<HostContext>[] = [
  route.get('/metrics', {
    summary: 'Figures in Prometheus’ text format',
    role: 'anyone',
    answer: z.string(),
    gives: 'text/plain',
    handle({ host }, { request }) {
      const { startedAt, groups } = host.status()
      const text = prometheusText(host.meter, {
        version,
        startedAt: Date.parse(startedAt),
        groups,
        sessions: (host.agents()?.queue.running() ?? []).map(({ state }) => state),
        tasks: host.store.countTasks(),
        waiting: waitingIn(host),
        usage: usageToday(host),
        channels: (host.chats?.liveness() ?? []).map(({ channel, isConnected, limitedUntil }) => ({
          ...{ name: channel, isConnected, isLimited: limitedUntil !== undefined },
        })),
      })
      return request.body(text, 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    },
  }),
]

function usageToday({ store, config }: Host): ModelUsage[] {
  const since = new Date().toISOString().slice(0, 10)
  return store.agents.usage({ since }).map(used => ({
    group: used.group,
    model: used.model,
    input: used.inputTokens,
    cached: used.cachedTokens,
    output: used.outputTokens,
    cost: costOf(config.usage.prices, used),
  }))
}
